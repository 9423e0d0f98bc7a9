// Thresholds of a run, similar to k6: `p99<20ms`, `errors<0.1%`, `weather.p99<20ms`, `hit.p99<5ms`, `rate>4900`.

import { destinations } from 'abohawa/common/endpoints.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import type { ReplayResult } from '../report/result.ts'
import { answeredRate, errorsIn } from '../report/run-figures.ts'
import { outcomes } from '../traffic/traffic-request.ts'
import type { Counts, Recorder, Scope } from './recorder.ts'

export type Threshold = {
  readonly text: string
  readonly isOfRate: boolean
  /** @param seconds until the last response */
  judge(recorder: Recorder, seconds: number): ReplayResult['thresholds'][number]
}

type Unit = 'ms' | '%' | '' | '/s'
/** In its unit; `isAnswered` is false for a lower bound. Null where nothing was measured. */
type Measure = (
  recorder: Recorder,
  seconds: number,
) => { readonly value: number; readonly isAnswered: boolean } | null
/** A count, and the total for its share. */
type Counted = (counts: Counts) => readonly [count: number, of: number]

const examples =
  'p99<20ms, max<1s, weather.p99<20ms, hit.p99<5ms, errors<0.1%, dropped<1, status.401<1% or rate>4900'

/** @throws InputError for an invalid expression */
export const thresholdOf = (text: string): Threshold => {
  const refused = (): never => {
    throw new InputError(`a threshold must be an expression such as ${examples}, got ${quoted(text)}`)
  }
  const [, name = '', sign = '', digits = '', given = ''] =
    /^([a-z0-9._]+)(<=|>=|<|>)(\d+(?:\.\d+)?)(us|µs|ms|s|m|%)?$/.exec(text.replaceAll(/\s/g, '')) ?? refused()
  const number = Number(digits)
  const threshold = (unit: Unit, measure: Measure, bound = number): Threshold => ({
    text: text.trim(),
    isOfRate: unit === '/s',
    judge: (recorder, seconds) => {
      const found = measure(recorder, seconds)
      const verdict = (measured: string, passed: boolean) => ({ threshold: text.trim(), measured, passed })
      // A bound that was not tested is not held.
      if (!found) return verdict('no response', false)
      const { value, isAnswered } = found
      // Nobody knows how long it would have waited, so no bound holds.
      if (!isAnswered) return verdict(`no response after ${written(value, unit)}`, false)
      const isBeyond = sign.startsWith('<') ? value < bound : value > bound
      return verdict(written(value, unit), isBeyond || (sign.endsWith('=') && value === bound))
    },
  })

  const latency = /^(?:(.+)\.)?(p(?:\d{1,2}(?:\.\d+)?|100)|mean|max)$/.exec(name)
  if (latency) {
    const [, within = '', figure = ''] = latency
    const factor = { us: 0.001, µs: 0.001, ms: 1, s: 1_000, m: 60_000 }[given]
    if (factor === undefined) return refused()
    const scope = scopeOf(within) ?? refused()
    const percent = figure === 'max' ? 100 : figure === 'mean' ? 'mean' : Number(figure.slice(1))
    return threshold('ms', recorder => recorder.latency(percent, scope), number * factor)
  }
  if (given === '%' && number > 100)
    throw new InputError(`a threshold must be a share from 0 % to 100 %, got ${quoted(text)}`)
  if (name === 'rate' && given === '')
    return threshold('/s', ({ counts }, seconds) =>
      seconds > 0 ? { value: answeredRate({ ...counts, seconds }), isAnswered: true } : null,
    )
  const [, status] = /^status\.([1-5]\d\d|[1-5]xx)$/.exec(name) ?? []
  const countedBy = status === undefined ? shares.get(name) : withStatus(status)
  if (!countedBy || (given !== '%' && given !== '')) return refused()
  return threshold(given, ({ counts }) => {
    const [count, of] = countedBy(counts)
    return of === 0 ? null : { value: given === '' ? count : (count / of) * 100, isAnswered: true }
  })
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

const written = (value: number, unit: Unit): string => {
  const digits = String(value >= 100 ? Math.round(value) : Number(value.toPrecision(3)))
  if (unit === '') return digits
  return `${digits} ${unit === '/s' ? 'requests/s' : unit}`
}

const ofWeather = ({ outcomes: { hit = 0, stale = 0, miss = 0 } }: Counts, count = 0) =>
  [count, hit + stale + miss] as const

const shares = new Map<string, Counted>([
  ['errors', counts => [errorsIn(counts, counts.statuses), counts.sent + counts.dropped]],
  ['hits', counts => ofWeather(counts, counts.outcomes.hit)],
  ['stale', counts => ofWeather(counts, counts.outcomes.stale)],
  ['misses', counts => ofWeather(counts, counts.outcomes.miss)],
  ['late', ({ late, sent }) => [late, sent]],
  ['dropped', ({ dropped, sent }) => [dropped, sent + dropped]],
])

const withStatus =
  (wanted: string): Counted =>
  ({ statuses, answered }) => {
    const those = Object.entries(statuses).filter(
      ([status]) => status === wanted || `${status[0]}xx` === wanted,
    )
    return [those.reduce((sum, [, count]) => sum + count, 0), answered]
  }
