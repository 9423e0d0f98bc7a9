// Runs the alert rules over real scrapes: turns them into the input series of promtool, as if Prometheus had scraped them at
// given minutes, and checks which alerts fire.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { without } from './programs.ts'

/** For tests that evaluate alert rules: false, or why they are skipped. */
export const withoutPromtool = without('promtool of Prometheus on the path', 'promtool', '--version')

const minuteMs = 60_000

export const rulesFile = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'alerts.yaml')

/** What a gateway answered to /metrics; it stands until the next scrape. */
export type Scrape = {
  /** From 0. */
  readonly minute: number
  readonly text: string
  /** The gateway's clock at it, ms since the epoch, where a test moved it; else so many minutes after the start. */
  readonly now?: number
}

type Test = { ok(found: unknown, message: string): unknown }

/** A gateway's scrapes, and exactly which alerts fire at minutes of it. */
export type Watch = {
  readonly name: string
  readonly scrapes: readonly Scrape[]
  /** The gateway's clock at minute 0, ms since the epoch: promtool's own begins at 1970. */
  readonly startedAt: number
  readonly expected: readonly { readonly at: number; readonly alerts: readonly string[] }[]
}

/** Checks that exactly these alerts fire at a minute. */
export const firesExactly = (
  t: Test,
  { at, alerts, ...watch }: Omit<Watch, 'name' | 'expected'> & { at: number; alerts: readonly string[] },
): void => {
  const { fine, output } = ruleTests([{ ...watch, name: 'scrapes', expected: [{ at, alerts }] }])
  t.ok(fine, `at minute ${at} these fire: ${alerts.join(', ') || 'none'}\n${output}`)
}

/** Checks them all in one run of promtool, whose output names those that do not hold. */
export const ruleTests = (watches: readonly Watch[]): { fine: boolean; output: string } => {
  const test = {
    rule_files: [rulesFile],
    evaluation_interval: '1m',
    tests: watches.map(({ name, scrapes, startedAt, expected }) => ({
      interval: '1m',
      input_series: seriesOf(scrapes, startedAt, Math.max(...expected.map(({ at }) => at))),
      promql_expr_test: expected.map(({ at, alerts }) => ({
        // What fails is printed with its expression, thus with the name.
        expr: `count by (alertname) (count by (alertname, instance) (ALERTS{alertstate="firing"})) # ${name}`,
        eval_time: `${at}m`,
        exp_samples: alerts.toSorted().map(alertname => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      })),
    })),
  }
  // JSON is YAML.
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-promtool-'))
  const file = join(folder, 'test.yaml')
  writeFileSync(file, JSON.stringify(test))
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
  rmSync(folder, { recursive: true })
  return { fine: status === 0, output: `${stdout}${stderr}` }
}

const target = 'job="abohawa",instance="gateway"'

const seriesOf = (scrapes: readonly Scrape[], startedAt: number, until: number) => {
  const rules = readFileSync(rulesFile, 'utf8')
  const samples = scrapes.map(({ minute, text, now = startedAt + minute * minuteMs }) => ({
    minute,
    samples: samplesIn(text),
    // Of promtool's clock at it.
    aheadMs: now - minute * minuteMs,
  }))
  const names = new Set(samples.flatMap(({ samples }) => [...samples.keys()]))
  // A histogram that counted nothing adds nothing to a sum, and most have: one for each endpoint, method and status.
  const counts = (series: string) =>
    !nameOf(series).endsWith('_bucket') ||
    samples.some(each => each.samples.get(series.replace(/le="[^"]+"/, 'le="+Inf"')) !== 0)
  const used = [...names].filter(series => rules.includes(nameOf(series)) && counts(series))
  return ['up', ...used].map(series => ({
    series: labelled(series),
    values: inRuns(until + 1, minute => {
      if (series === 'up') return 1
      const scrape = samples.findLast(each => each.minute <= minute)
      const value = scrape?.samples.get(series)
      if (scrape === undefined || value === undefined) return '_'
      return nameOf(series).endsWith('_timestamp_seconds') ? value - scrape.aheadMs / 1000 : value
    }),
  }))
}

/** The values of minutes from 0 on in promtool's notation, in which a value stands once with how often it follows. */
const inRuns = (length: number, valueAt: (minute: number) => number | '_'): string => {
  const runs: { value: number | '_'; times: number }[] = []
  for (let minute = 0; minute < length; minute++) {
    const value = valueAt(minute)
    const last = runs.at(-1)
    if (last && Object.is(last.value, value)) last.times += 1
    else runs.push({ value, times: 1 })
  }
  return runs.map(({ value, times }) => (value === '_' ? `_x${times}` : `${value}+0x${times - 1}`)).join(' ')
}

const nameOf = (series: string): string => series.split('{', 1)[0] ?? ''

const labelled = (series: string): string =>
  series.includes('{') ? series.replace('{', `{${target},`) : `${series}{${target}}`

/** The samples of a scrape: series with its labels → value. */
export const samplesIn = (text: string): Map<string, number> => {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1).replace('+Inf', 'Infinity'))]
    }),
  )
}
