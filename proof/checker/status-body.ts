// The body of `/status.json`: instants to the minute, and outages only where the history has faults.

import type { Answer } from '../history.ts'
import { day, type Facts, isoOf, minute, second, zoneMs } from './facts.ts'
import { isOfWeather } from './paths.ts'
import { fields, type Shape, that } from './shapes.ts'

const days = 30
const backMs = 10 * second

export const statusBody = (facts: Facts, answer: Answer): Shape => {
  const skew = facts.skewSpan + backMs
  const now = answer.at
  const isMinute = (value: unknown): boolean =>
    isoOf(Math.floor(Date.parse(String(value)) / minute) * minute) === value
  const isNow = (value: unknown): boolean =>
    isMinute(value) && Math.abs(Date.parse(String(value)) - now) <= minute + skew + (now - answer.sent.at)
  const share = that(value => value === null || (Number(value) >= 0 && Number(value) <= 1), 'share')
  const age = that(
    value => value === null || (Number.isInteger(Number(value) / 60) && Number(value) >= 0),
    'age in minutes',
  )
  return fields({
    at: that(isNow, 'minute of now'),
    weather: fields({
      fresh_share: share,
      median_age_seconds: age,
      oldest_age_seconds: age,
      model_run: that(value => value === null || Date.parse(String(value)) <= now + skew, 'run'),
    }),
    outages: outagesOf(facts, answer, isMinute),
    days: daysOf(facts, answer, share),
  })
}

/** When something began that may be an outage: Redis was away, or weather was missing or stale. */
const beginsOf = ({ schedule, troubles, answers }: Facts, { seq }: Answer, of: string): number[] =>
  of === 'quotas'
    ? schedule.skews.flatMap((_, gateway) =>
        troubles(gateway).flatMap(({ from }) => (from.seq < seq ? from.at : [])),
      )
    : answers.flatMap(({ sent, status, headers, path }) =>
        sent.seq < seq &&
        isOfWeather(path) &&
        (status === 0 || status === 500 || isShort.test(headers['cache-status'] ?? ''))
          ? sent.at
          : [],
      )
const isShort = /ttl=-|fwd=stale|\d stale|provider_|timeline_exhausted|waited_too_long|key_share/

const outagesOf =
  (facts: Facts, answer: Answer, isMinute: (value: unknown) => boolean): Shape =>
  value => {
    if (!Array.isArray(value)) return 'it has no list of outages'
    for (const one of value) {
      const begins = beginsOf(facts, answer, (one as { of: string }).of)
      const least = Math.min(...begins) - minute - facts.skewSpan
      const fault = fields({
        of: that(of => of === 'weather' || of === 'quotas', 'kind of outage'),
        since: that(
          since => isMinute(since) && Date.parse(String(since)) >= least,
          'minute since the first fault',
        ),
      })(one)
      if (fault) return fault
    }
    return undefined
  }

/** Of thirty days, today first; before the history nothing is known. No day has more minutes of outage than since the first fault. */
const daysOf =
  (facts: Facts, answer: Answer, share: Shape): Shape =>
  value => {
    if (!Array.isArray(value) || value.length !== days) return `it has not ${days} days`
    const today = Math.floor((answer.at + zoneMs) / day)
    const first = new Date(facts.schedule.start - facts.skewSpan + zoneMs).toISOString().slice(0, 10)
    const names = value.map(one => (one as { day: string }).day)
    const at = [0, 1, -1].find(shift => names[0] === dayAt(today + shift))
    if (at === undefined) return `its first day is ${names[0]}`
    for (const [i, one] of value.entries()) {
      const name = dayAt(today + at - i)
      const isBefore = name < first
      const minutes = (of: string): Shape => {
        const begins = beginsOf(facts, answer, of)
        const passed = begins.length === 0 ? 0 : (answer.at - Math.min(...begins) + facts.skewSpan) / minute
        return that(
          count =>
            isBefore ? count === null : count === null || Number(count) <= Math.min(1_440, passed + 1),
          `count of minutes in at most ${passed.toFixed(1)}`,
        )
      }
      const fault = fields({
        day: that(each => each === name, `day ${name}`),
        availability: isBefore ? that(each => each === null, 'null') : share,
        outage_minutes: fields({ weather: minutes('weather'), quotas: minutes('quotas') }),
      })(one)
      if (fault) return fault
    }
    return undefined
  }

const dayAt = (number: number): string => new Date(number * day).toISOString().slice(0, 10)
