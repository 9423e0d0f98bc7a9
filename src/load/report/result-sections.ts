// The sections of a report on one run, apart from the verdict: what was replayed, settings, rate, latency, answers, cache,
// provider, gateway, load generator, machine. Each is HTML in one language.

import { badge, code, escaped, facts, type Html, table } from '../../page/html.ts'
import type { ReplayResult } from './result.ts'
import { chartsOf, type Writing } from './result-charts.ts'
import { weathersOf } from './run-figures.ts'

export type Section = { readonly id: string; readonly title: string; readonly content: Html }

/** How a run was paced, in a few words. */
const paceText = ({ pace }: ReplayResult, { say, figures }: Writing): string => {
  if (pace.mode === 'closed') return say('paceClosed', figures.count(pace.connections))
  if (pace.mode === 'rate') return say('paceRate', figures.measured(pace.rate ?? 0))
  return pace.speed === null || pace.speed === 1
    ? say('paceRecorded')
    : say('paceRecordedTimes', figures.measured(pace.speed))
}

const dateTime = (iso: string, { figures }: Writing): string =>
  figures.instant(iso, '1970-01-01T00:00:00Z', true)

const replayed = (run: ReplayResult, writing: Writing): Html => {
  const { say, figures } = writing
  const { traffic, pace, totals } = run
  return facts([
    [say('files'), traffic.files.map(code).join(', ')],
    [say('hash'), code(traffic.sha256)],
    [
      say('requests'),
      escaped(
        totals.due === traffic.requests
          ? figures.count(totals.due)
          : say('requestsFrom', figures.count(totals.due), figures.count(traffic.requests)),
      ),
    ],
    [say('keys'), escaped(figures.count(traffic.keys))],
    ...(traffic.from === null
      ? []
      : [[say('recordedFrom'), escaped(dateTime(traffic.from, writing))] as const]),
    [say('span'), escaped(figures.duration(traffic.spanSeconds))],
    [say('lasted'), escaped(figures.duration((Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000))],
    ...(traffic.faultyLines === 0
      ? []
      : [[say('faultyLines'), escaped(figures.count(traffic.faultyLines))] as const]),
    [say('pace'), escaped(paceText(run, writing))],
    [say('clock'), escaped(say(run.kind === 'rehearsal' ? 'clockMoved' : 'clockReal'))],
    [
      say('connections'),
      escaped(
        say(
          'connectionsOf',
          figures.count(pace.connections),
          figures.plain(Number(pace.http)),
          figures.count(pace.workers),
        ),
      ),
    ],
    [say('target'), code(pace.target)],
    [say('started'), escaped(dateTime(run.startedAt, writing))],
  ])
}

const settings = ({ settings: changed }: ReplayResult, { say }: Writing): Html => {
  if (changed === null) return `<p>${escaped(say('settingsUnknown'))}</p>`
  if (changed.length === 0) return `<p>${escaped(say('settingsDefault'))}</p>`
  return table(
    say('settings'),
    [{ head: say('setting') }, { head: say('value') }, { head: say('default') }],
    changed.map(({ path, value, default: usual }) => [code(path), `<b>${code(value)}</b>`, code(usual)]),
  )
}

/** The outcomes of a run that have a word; others stand as they are. */
export const outcomeWords: Readonly<
  Record<string, 'hit' | 'stale' | 'miss' | 'none' | 'unanswered' | 'unsent'>
> = {
  __proto__: null as never,
  hit: 'hit',
  stale: 'stale',
  miss: 'miss',
  none: 'none',
  failed: 'unanswered',
  dropped: 'unsent',
}

const outcomeText = (outcome: string, { say }: Writing): string => {
  const word = outcomeWords[outcome]
  return word === undefined ? outcome : say(word)
}

const latencyTable = (run: ReplayResult, writing: Writing): Html => {
  const { say, figures } = writing
  const number = (head: string) => ({ head, isNumber: true })
  const ms = (value: number): Html => escaped(figures.latency(value / 1000))
  const percentiles = ({ count, p50, p90, p99, p999, max }: ReplayResult['latency']): Html[] => [
    escaped(figures.count(count)),
    ...[p50, p90, p99, p999, max].map(ms),
  ]
  return table(
    say('latency'),
    [
      { head: say('endpoint') },
      { head: say('outcome') },
      number(say('count')),
      ...['p50', 'p90', 'p99', 'p99.9'].map(number),
      number(say('max')),
    ],
    [
      ...run.latencies.map(latency => [
        `<span class="word">${code(latency.endpoint)}</span>`,
        `<span class="word">${escaped(outcomeText(latency.outcome, writing))}</span>`,
        ...percentiles(latency),
      ]),
      [escaped(say('all')), '', ...percentiles(run.latency)],
    ],
    new Set([run.latencies.length]),
  )
}

/** Counts by name, each with its share of all of them, but `isCounted` alone where it is given. */
const countTable = (
  head: string,
  counts: Readonly<Record<string, number>>,
  nameOf: (name: string) => Html,
  { say, figures }: Writing,
  isCounted: (name: string) => boolean = () => true,
): Html => {
  const all = Object.entries(counts).reduce((sum, [name, count]) => (isCounted(name) ? sum + count : sum), 0)
  return table(
    head,
    [{ head }, { head: say('count'), isNumber: true }, { head: say('share'), isNumber: true }],
    Object.entries(counts)
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => [
        nameOf(name),
        escaped(figures.count(count)),
        isCounted(name) ? escaped(figures.share(count / Math.max(1, all))) : '–',
      ]),
  )
}

const answers = (run: ReplayResult, writing: Writing): Html => {
  const { say, figures } = writing
  const { failed } = run.totals
  const failures =
    Object.keys(failed).length === 0
      ? `<p>${escaped(say('noFailures'))}</p>`
      : `<h3>${escaped(say('failures'))}</h3>${countTable(say('reason'), failed, code, writing)}`
  const { bodies } = run
  const faults = bodies?.faults.reduce((sum, { count }) => sum + count, 0) ?? 0
  const checked =
    bodies === null
      ? ''
      : `<h3>${escaped(say('bodies'))}</h3><p>${escaped(
          faults === 0
            ? say('bodiesGood', figures.count(bodies.checked))
            : say('bodiesBad', figures.count(bodies.checked), figures.count(faults)),
        )}</p>${
          faults === 0
            ? ''
            : table(
                say('bodies'),
                [{ head: say('path') }, { head: say('fault') }, { head: say('count'), isNumber: true }],
                bodies.faults.map(({ path, fault, count }) => [
                  code(path),
                  escaped(fault),
                  escaped(figures.count(count)),
                ]),
              )
        }`
  return `<div class="pair"><div>${countTable(say('status'), run.statuses, code, writing)}</div><div>${countTable(
    say('outcome'),
    run.outcomes,
    name => escaped(outcomeText(name, writing)),
    writing,
    // As everywhere: shares of the answers with weather.
    name => name !== 'none',
  )}</div></div>${failures}${checked}`
}

const ages = ({ age }: ReplayResult, { say, figures }: Writing): Html =>
  age === null
    ? ''
    : facts([
        [say('age50'), escaped(figures.duration(age.p50))],
        [say('age95'), escaped(figures.duration(age.p95))],
        [say('ageOldest'), escaped(figures.duration(age.max))],
      ])

/** The names of windows that have a word; others stand as they are. */
const spanText = (span: string, { say }: Writing): string =>
  span === 'minute' || span === 'hour' || span === 'day' || span === 'month' ? say(span) : span

const provider = (run: ReplayResult, writing: Writing, chart: Html): Html => {
  const { say, figures } = writing
  if (run.provider === null) return `<p>${escaped(say('providerUnknown'))}</p>`
  const { requests, weight, windows } = run.provider
  const rows = windows.map(({ span, limit, most }) => {
    const share = limit === null ? null : most / limit
    const state = share === null || share <= 0.9 ? 'good' : share <= 1 ? 'warn' : 'bad'
    return [
      escaped(spanText(span, writing)),
      escaped(limit === null ? say('noLimit') : figures.count(limit)),
      escaped(figures.count(most)),
      share === null ? '–' : badge(state, figures.share(share)),
    ]
  })
  return `<p>${escaped(say('providerTotals', figures.count(requests), figures.count(weight)))}</p>${table(
    say('provider'),
    [
      { head: say('window') },
      { head: say('limit'), isNumber: true },
      { head: say('most'), isNumber: true },
      { head: say('ofLimit'), isNumber: true },
    ],
    rows,
  )}${chart}`
}

const gateway = ({ gateway: used, totals }: ReplayResult, { say, figures }: Writing): Html => {
  if (used === null) return `<p>${escaped(say('gatewayUnknown'))}</p>`
  const delay = (ms: number | null): string => figures.latency(ms === null ? null : ms / 1000)
  return facts([
    [
      say('cpu'),
      escaped(
        say(
          'cpuEach',
          `${figures.measured(used.cpuSeconds)} s`,
          figures.latency(totals.answered === 0 ? null : used.cpuSeconds / totals.answered),
        ),
      ),
    ],
    [say('memory'), escaped(figures.bytes(used.memoryBytes))],
    [say('loopDelay'), escaped(say('p50AndP99', delay(used.loopDelayP50), delay(used.loopDelayP99)))],
  ])
}

const generator = (run: ReplayResult, { say, figures }: Writing, chart: Html): Html => {
  const { saturated, reason, cpuShare, loopDelayP99, lateP99 } = run.generator
  const { late, dropped, sent, due } = run.totals
  const counted = (count: number, of: number): string =>
    `${figures.count(count)} (${figures.share(of === 0 ? 0 : count / of)})`
  return `${facts([
    [
      say('state'),
      `${badge(saturated ? 'bad' : 'good', say(saturated ? 'generatorBusy' : 'generatorFree'))}${reason === null ? '' : ` ${escaped(reason)}`}`,
    ],
    [say('cpuShare'), escaped(figures.share(cpuShare))],
    [say('loopDelayP99'), escaped(figures.latency(loopDelayP99 / 1000))],
    [say('lateness'), escaped(figures.latency(lateP99 / 1000))],
    [say('late'), escaped(counted(late, sent))],
    [say('dropped'), `${escaped(counted(dropped, due))} <small>${escaped(say('droppedHint'))}</small>`],
  ])}${chart}`
}

const machine = ({ machine: own, command }: ReplayResult, { say, figures }: Writing): Html =>
  facts([
    [say('processor'), escaped(say('processorOf', figures.count(own.cores), own.cpu))],
    [say('memory'), escaped(figures.bytes(own.memoryBytes))],
    [say('node'), code(own.node)],
    [say('version'), code(own.version)],
    [say('command'), code(command)],
  ])

/** All of them, in the order of the page. */
export const sectionsOf = (run: ReplayResult, writing: Writing, most?: number): readonly Section[] => {
  const { say } = writing
  const charts = chartsOf([{ run }], writing, most)
  return [
    { id: 'replayed', title: say('replayed'), content: replayed(run, writing) },
    { id: 'settings', title: say('settings'), content: settings(run, writing) },
    { id: 'rate', title: say('rate'), content: charts.rate() },
    {
      id: 'latency',
      title: say('latency'),
      content: `<p class="note">${escaped(say('latencyNote'))}</p>${latencyTable(run, writing)}<div class="pair">${charts.percentiles()}${charts.latency()}</div>`,
    },
    { id: 'answers', title: say('answers'), content: answers(run, writing) },
    {
      id: 'cache',
      title: say('cache'),
      content:
        weathersOf(run) === 0
          ? `<p>${escaped(say('noWeather'))}</p>`
          : `${ages(run, writing)}<div class="pair">${charts.hits()}${charts.age()}</div>`,
    },
    { id: 'provider', title: say('provider'), content: provider(run, writing, charts.weight()) },
    { id: 'gateway', title: say('gateway'), content: gateway(run, writing) },
    { id: 'generator', title: say('generator'), content: generator(run, writing, charts.lateness()) },
    { id: 'machine', title: say('machine'), content: machine(run, writing) },
  ]
}
