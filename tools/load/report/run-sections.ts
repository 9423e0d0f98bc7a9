// A run as HTML sections: warnings, verdict, main figures, then everything that was measured.

import type { Figures } from 'abohawa/common/page/figures.js'
import { badge, escaped, facts, type Html, notice } from 'abohawa/common/page/html.ts'
import { code, table, tiles } from '../../common/html.ts'
import { latencyText } from './metrics.ts'
import { charts } from './report-file.ts'
import type { ReplayResult } from './result.ts'
import { answeredRate, errorsOf, paceText, sentFor, shareOf, weathersOf } from './run-figures.ts'

export type Section = readonly [id: string, title: string, content: Html]

export const warningsOf = ({ generator, interrupted, totals }: ReplayResult, figures: Figures): Html => {
  const reason = escaped(generator.reason?.replace(/\.$/, '') ?? '–')
  const saturated = `<b>These are the figures of the load generator, not of the gateway</b>The generator was saturated: ${reason}. Lower the rate, give it more workers or another machine, and run it again.`
  const stopped = `<b>The run was stopped before its end</b>All figures count the requests that ran: ${figures.count(totals.due)}.`
  return [
    generator.saturated ? notice('bad', saturated).replace('class="notice', 'class="notice loud') : '',
    interrupted ? notice('warn', stopped) : '',
  ].join('')
}

export const thresholdsFailed = ({ thresholds }: ReplayResult): number =>
  thresholds.filter(({ passed }) => !passed).length

const thresholdsOf = (run: ReplayResult): Html => {
  const { thresholds } = run
  if (thresholds.length === 0)
    return '<p>No threshold was given or could be decided, so this run neither passed nor failed.</p>'
  const [all, failed] = [thresholds.length, thresholdsFailed(run)]
  const verdict =
    failed === 0
      ? notice('good', `<b>All thresholds passed: ${all} of ${all}.</b>`)
      : notice('bad', `<b>Thresholds failed: ${failed} of ${all}.</b>`)
  const rows = thresholds.map(({ threshold, measured, passed }) => [
    code(threshold),
    escaped(measured),
    badge(passed ? 'good' : 'bad', passed ? 'passed' : 'failed'),
  ])
  return verdict + table('Verdict', [{ head: 'Threshold' }, number('Measured'), { head: 'Result' }], rows)
}

const tilesOf = (run: ReplayResult, figures: Figures): Html => {
  const { totals, latency, provider } = run
  const errors = errorsOf(run)
  const perSecond = (rate: number): string => `${figures.measured(rate)}/s`
  const pairs: readonly (readonly [name: string, value: string, note?: string])[] = [
    [
      'Rate',
      perSecond(answeredRate(totals)),
      `of ${perSecond(totals.due / Math.max(sentFor(totals), 1e-9))} requested`,
    ],
    ['Answered', figures.count(totals.answered)],
    [
      'Errors',
      figures.share(errors / Math.max(1, totals.due)),
      `${figures.count(errors)} not sent, no response or 5xx`,
    ],
    ['p50', latencyText(latency.p50, figures)],
    ['p99', latencyText(latency.p99, figures), `max ${latencyText(latency.max, figures)}`],
    ['Hits', figures.share(shareOf(run, 'hit')), 'of responses with weather'],
  ]
  const weight = provider && {
    name: 'Provider weight',
    value: figures.count(provider.weight),
    note: `${figures.count(provider.requests)} requests`,
  }
  return tiles([...pairs.map(([name, value, note]) => ({ name, value, note })), ...(weight ? [weight] : [])])
}

export const dateTime = (iso: string, figures: Figures): string => figures.dateTime(iso, true)

const replayed = (run: ReplayResult, figures: Figures): Html => {
  const { traffic, pace, totals } = run
  const { count, duration } = figures
  const others = totals.due === traffic.requests ? '' : `; the files have ${count(traffic.requests)}`
  return facts([
    ['Files', traffic.files.map(code).join(', ')],
    ['SHA-256', code(traffic.sha256)],
    ['Requests', `${count(totals.due)}${others}`],
    ['Keys', count(traffic.keys)],
    ['Recorded from', traffic.from === null ? undefined : dateTime(traffic.from, figures)],
    ['Time span', duration(traffic.spanSeconds)],
    ['Duration', duration((Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000)],
    ['Invalid lines skipped', traffic.faultyLines === 0 ? undefined : count(traffic.faultyLines)],
    ['Pace', paceText(run, figures)],
    ['Clock', run.kind === 'rehearsal' ? 'moved clock of gateway, provider and replay' : 'machine clock'],
    ['Connections', `${count(pace.connections)} over HTTP/${pace.http}`],
    ['Workers', count(pace.workers)],
    ['Target', code(pace.target)],
    ['Started', dateTime(run.startedAt, figures)],
  ])
}

const settings = ({ settings: changed }: ReplayResult): Html => {
  if (changed === null) return '<p>The settings are not known.</p>'
  if (changed.length === 0) return '<p>All settings have their defaults.</p>'
  return table(
    'Settings',
    [{ head: 'Setting' }, { head: 'Value' }, { head: 'Default' }],
    changed.map(({ path, value, default: usual }) => [code(path), `<b>${code(value)}</b>`, code(usual)]),
  )
}

/** Outcomes with other words on a page. */
const outcomeWords = new Map([
  ['none', 'no weather'],
  ['failed', 'no response'],
  ['dropped', 'never sent'],
])
const outcomeCell = (outcome: string): Html => escaped(outcomeWords.get(outcome) ?? outcome)

export const number = (head: string) => ({ head, isNumber: true })

const latency = (run: ReplayResult, place: number, figures: Figures): Html => {
  const cells = ({ count, p50, p90, p99, p999, max }: ReplayResult['latency']): Html[] => [
    figures.count(count),
    ...[p50, p90, p99, p999, max].map(ms => latencyText(ms, figures)),
  ]
  const rows = run.latencies.map(each => [code(each.endpoint), outcomeCell(each.outcome), ...cells(each)])
  const heads = ['Count', 'p50', 'p90', 'p99', 'p99.9', 'Max'].map(number)
  return `<p class="note">Latency runs from the scheduled time of a request to the end of its body. A request without a response counts as the slowest; its own rows show when it was given up.</p>${table(
    'Latency',
    [{ head: 'Endpoint' }, { head: 'Outcome' }, ...heads],
    [...rows, ['all', '', ...cells(run.latency)]],
    new Set([rows.length]),
  )}${charts(place, 'percentiles', 'latency')}`
}

/** Counts by name with their shares. @param isCounted the names that have a share */
const countTable = (
  head: string,
  counts: Readonly<Record<string, number>>,
  figures: Figures,
  cellOf: (name: string) => Html = code,
  isCounted: (name: string) => boolean = () => true,
): Html => {
  const all = Object.entries(counts).reduce((sum, [name, count]) => (isCounted(name) ? sum + count : sum), 0)
  return table(
    head,
    [{ head }, number('Count'), number('Share')],
    Object.entries(counts)
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => [
        cellOf(name),
        figures.count(count),
        isCounted(name) ? figures.share(count / Math.max(1, all)) : '–',
      ]),
  )
}

const answers = (run: ReplayResult, figures: Figures): Html => {
  const { failed } = run.totals
  const failures =
    Object.keys(failed).length === 0
      ? '<p>Every sent request was answered.</p>'
      : `<h3>Requests without a response</h3>${countTable('Reason', failed, figures)}`
  // Shares are of responses with weather.
  const outcomes = countTable('Outcome', run.outcomes, figures, outcomeCell, name => name !== 'none')
  return countTable('Status', run.statuses, figures) + outcomes + failures + bodiesOf(run, figures)
}

const bodiesOf = ({ bodies }: ReplayResult, figures: Figures): Html => {
  if (bodies === null) return ''
  const heading = '<h3>Body check</h3>'
  const checked = figures.count(bodies.checked)
  const faults = bodies.faults.reduce((sum, { count }) => sum + count, 0)
  if (faults === 0) return `${heading}<p>All ${checked} checked bodies match the API schema.</p>`
  return `${heading}<p>Of ${checked} checked bodies, ${figures.count(faults)} don’t match the API schema.</p>${table(
    'Body check',
    [{ head: 'Path' }, { head: 'Fault' }, number('Count')],
    bodies.faults.map(({ path, fault, count }) => [code(path), escaped(fault), figures.count(count)]),
  )}`
}

const cache = (run: ReplayResult, place: number, figures: Figures): Html => {
  if (weathersOf(run) === 0) return '<p>No response had weather.</p>'
  const { age } = run
  const ages = facts([
    ['Age, median', figures.duration(age?.p50)],
    ['Age, p95', figures.duration(age?.p95)],
    ['Age, oldest', figures.duration(age?.max)],
  ])
  return (age === null ? '' : ages) + charts(place, 'hits', 'age')
}

const provider = (run: ReplayResult, place: number, figures: Figures): Html => {
  if (run.provider === null) return '<p>The requests to the provider are not known.</p>'
  const { requests, weight, windows } = run.provider
  const rows = windows.map(({ span, limit, most }) => {
    if (limit === null) return [escaped(span), 'none', figures.count(most), '–']
    const share = most / limit
    const state = share <= 0.9 ? 'good' : share <= 1 ? 'warn' : 'bad'
    return [escaped(span), figures.count(limit), figures.count(most), badge(state, figures.share(share))]
  })
  const heads = ['Limit', 'Peak', 'Share of limit'].map(number)
  return [
    `<p>${figures.count(requests)} requests, weight ${figures.count(weight)}.</p>`,
    table('Provider', [{ head: 'Window' }, ...heads], rows),
    charts(place, 'weight'),
  ].join('')
}

const gateway = ({ gateway: used, totals }: ReplayResult, figures: Figures): Html => {
  if (used === null) return '<p>The CPU time and memory of the gateway are not known.</p>'
  const delay = (ms: number | null): string => figures.latency(ms === null ? null : ms / 1000)
  const each = figures.latency(totals.answered === 0 ? null : used.cpuSeconds / totals.answered)
  return facts([
    ['CPU time', `${figures.measured(used.cpuSeconds)} s (${each} per request)`],
    ['Memory', figures.bytes(used.memoryBytes)],
    ['Event-loop delay', `p50 ${delay(used.loopDelayP50)}, p99 ${delay(used.loopDelayP99)}`],
  ])
}

const generator = (run: ReplayResult, place: number, figures: Figures): Html => {
  const { saturated, reason, cpuShare, loopDelayP99, lateP99 } = run.generator
  const { late, dropped, sent, due } = run.totals
  const counted = (count: number, of: number): string =>
    `${figures.count(count)} (${figures.share(of === 0 ? 0 : count / of)})`
  const state = badge(saturated ? 'bad' : 'good', saturated ? 'saturated' : 'not saturated')
  return `${facts([
    ['State', `${state}${reason === null ? '' : ` ${escaped(reason)}`}`],
    ['Busiest core', figures.share(cpuShare)],
    ['Event-loop delay, p99', figures.latency(loopDelayP99 / 1000)],
    ['Send delay, p99', figures.latency(lateP99 / 1000)],
    ['Late (more than 10 ms)', counted(late, sent)],
    ['Dropped', `${counted(dropped, due)} <small>not sent: no connection was free</small>`],
  ])}${charts(place, 'lateness')}`
}

const machine = ({ machine: own, command }: ReplayResult, figures: Figures): Html =>
  facts([
    ['Processor', `${figures.count(own.cores)} × ${escaped(own.cpu)}`],
    ['Memory', figures.bytes(own.memoryBytes)],
    ['Node', code(own.node)],
    ['Version', code(own.version)],
    ['Command', code(command)],
  ])

/** In the order of the page. @param place the index of the run for the charts */
export const sectionsOf = (run: ReplayResult, place: number, figures: Figures): readonly Section[] => [
  ['verdict', 'Verdict', thresholdsOf(run) + tilesOf(run, figures)],
  ['replayed', 'Traffic', replayed(run, figures)],
  ['settings', 'Settings', settings(run)],
  ['rate', 'Rate', charts(place, 'rate')],
  ['latency', 'Latency', latency(run, place, figures)],
  ['answers', 'Responses', answers(run, figures)],
  ['cache', 'Cache', cache(run, place, figures)],
  ['provider', 'Provider', provider(run, place, figures)],
  ['gateway', 'Gateway', gateway(run, figures)],
  ['generator', 'Load generator', generator(run, place, figures)],
  ['machine', 'Environment', machine(run, figures)],
]
