// Thresholds: what a run must hold to be good, as k6 has them in other words. `p99<20ms`, `errors<0.1%`, `weather.p99<20ms`,
// `hit.p99<5ms`, `rate>4900`. Reads expressions and checks what a recorder holds; the exit code is the command's.

import { destinations } from '../../common/endpoints.ts'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { ReplayResult } from '../report/result.ts'
import { errorsIn } from '../report/run-figures.ts'
import { outcomes } from '../traffic/traffic-request.ts'
import type { Counts, Recorder, Scope } from './recorder.ts'

export type Threshold = {
  readonly text: string
  readonly scope: Scope
  readonly metric: string
  readonly below: boolean
  readonly orEqual: boolean
  /** In ms, percent, a count, or requests a second. */
  readonly bound: number
  readonly unit: Unit
}
type Unit = 'ms' | '%' | '' | '/s'

const shares = ['errors', 'hits', 'stale', 'misses', 'late', 'dropped'] as const
type Share = (typeof shares)[number]

const allowed =
  'p50, p99.9 or another percentile, mean or max with a duration (p99<20ms); errors, hits, stale, misses, late, dropped or status.401 with a share or a count (errors<0.1%, dropped<1); rate with requests a second (rate>4900); latencies also of an endpoint or an outcome (weather.p99<20ms, hit.p99<5ms)'

/** @throws InputError for what is no threshold */
export const thresholdOf = (text: string): Threshold => {
  const refused = (): never => {
    throw new InputError(`the threshold ${quoted(text)} is not one; allowed: ${allowed}`)
  }
  const [, name = '', sign = '', value = ''] =
    /^([a-z0-9.]+)(<=|>=|<|>)(\d+(?:\.\d+)?(?:us|µs|ms|s|m|%)?)$/.exec(text.replaceAll(/\s/g, '')) ??
    refused()
  const [, digits = '', written = ''] = /^([\d.]+)(.*)$/.exec(value) ?? []
  const common = { text: text.trim(), below: sign.startsWith('<'), orEqual: sign.endsWith('=') }
  const number = Number(digits)
  const latency = /^(?:(.+)\.)?(p(?:\d{1,2}(?:\.\d+)?|100)|mean|max)$/.exec(name)
  if (latency) {
    const factor = { us: 0.001, µs: 0.001, ms: 1, s: 1_000, m: 60_000 }[written]
    if (factor === undefined) return refused()
    const scope = scopeOf(latency[1] ?? '') ?? refused()
    return { ...common, scope, metric: latency[2] ?? '', bound: number * factor, unit: 'ms' }
  }
  const isShare = shares.some(share => share === name) || /^status\.([1-5]\d\d|[1-5]xx)$/.test(name)
  if (written === '%' && number > 100)
    throw new InputError(`the threshold ${quoted(text)} is a share of more than 100 %; allowed: 0 % to 100 %`)
  if (isShare && (written === '%' || written === ''))
    return { ...common, scope: {}, metric: name, bound: number, unit: written }
  if (name === 'rate' && written === '')
    return { ...common, scope: {}, metric: name, bound: number, unit: '/s' }
  return refused()
}

const scopeOf = (text: string): Scope | undefined => {
  const scope: { -readonly [Part in keyof Scope]: Scope[Part] } = {}
  for (const part of text === '' ? [] : text.split('.')) {
    const endpoint = destinations.find(name => name === part)
    if (endpoint && !scope.endpoint) scope.endpoint = endpoint
    else if (outcomes.some(outcome => outcome === part) && !scope.outcome) scope.outcome = part
    else return undefined
  }
  return scope
}

/** @param seconds how long the run sent */
export const checkThresholds = (
  thresholds: readonly Threshold[],
  recorder: Recorder,
  seconds: number,
): ReplayResult['thresholds'] =>
  thresholds.map(threshold => {
    const measured = measure(threshold, recorder, seconds)
    const { text, below, orEqual, bound, unit } = threshold
    const failed = (measured: string) => ({ threshold: text, measured, passed: false })
    // Of nothing nothing is known: a bound that was not tried is not held.
    if (measured === undefined) return failed('no answer')
    // How long it would have waited is not known: no bound holds for it.
    if (typeof measured === 'object') return failed(`no answer after ${written(measured.unansweredMs, unit)}`)
    const passed = (orEqual && measured === bound) || (below ? measured < bound : measured > bound)
    return { threshold: text, measured: written(measured, unit), passed }
  })

const written = (value: number, unit: Unit): string => {
  const digits =
    value === 0 ? '0' : value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
  return unit === '' || unit === '%'
    ? `${digits}${unit === '%' ? ' %' : ''}`
    : `${digits} ${unit === '/s' ? 'requests/s' : unit}`
}

const measure = (
  { scope, metric, unit }: Threshold,
  recorder: Recorder,
  seconds: number,
): number | { readonly unansweredMs: number } | undefined => {
  if (unit === 'ms') {
    const percent = metric === 'max' ? 100 : metric === 'mean' ? 'mean' : Number(metric.slice(1))
    const waited = recorder.latency(percent, scope)
    if (waited === null) return undefined
    return waited.isAnswered ? waited.ms : { unansweredMs: waited.ms }
  }
  const { counts } = recorder
  if (unit === '/s') return seconds > 0 ? counts.answered / seconds : undefined
  const { count, of } = metric.startsWith('status.')
    ? byStatus(counts, metric.slice(7))
    : shareOf[metric as Share](counts)
  if (of === 0) return undefined
  return unit === '' ? count : (count / of) * 100
}

const byStatus = ({ statuses, answered }: Counts, wanted: string) => ({
  count: Object.entries(statuses).reduce(
    (sum, [status, count]) => (status === wanted || `${status[0]}xx` === wanted ? sum + count : sum),
    0,
  ),
  of: answered,
})

const ofWeather = ({ outcomes: { hit = 0, stale = 0, miss = 0 } }: Counts, count = 0) => ({
  count,
  of: hit + stale + miss,
})
const ofDue = ({ sent, dropped }: Counts, count: number) => ({ count, of: sent + dropped })

const shareOf: Record<Share, (counts: Counts) => { count: number; of: number }> = {
  errors: counts => ofDue(counts, errorsIn(counts, counts.statuses)),
  hits: counts => ofWeather(counts, counts.outcomes.hit),
  stale: counts => ofWeather(counts, counts.outcomes.stale),
  misses: counts => ofWeather(counts, counts.outcomes.miss),
  late: counts => ({ count: counts.late, of: counts.sent }),
  dropped: counts => ofDue(counts, counts.dropped),
}
