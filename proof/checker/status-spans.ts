// When something may have been noticed that the status page tells of: how long what it shows is kept, and the spans of outages.

import type { Answer, Moment } from '../history.ts'
import { backAfterMs, backAfterRealMs, type Facts, second } from './facts.ts'
import { isOfWeather } from './paths.ts'

export type Span = readonly [from: number, to: number]

// What was read for one request is shown to those of the next five seconds.
export const keptMs = 5 * second

/** When what happened is over for a gateway: connections and calls take the machine's time, while the clock may be moved. */
export const reachedBy = ({ events }: Facts, { seq, ms, at }: Moment): { readonly at: number } =>
  events.find(event => event.seq > seq && event.ms > ms + backAfterRealMs) ?? events.at(-1) ?? { at }

/** When something may have been noticed that is an outage: Redis was away, or weather was missing or stale. */
export const spansOf = (facts: Facts, { seq }: Answer, of: string): Span[] => {
  const { schedule, troubles, answers } = facts
  const untilOf = (to: Moment): number => Math.max(to.at + backAfterMs, reachedBy(facts, to).at)
  if (of === 'quotas')
    return schedule.skews.flatMap((_, gateway) =>
      troubles(gateway).flatMap(({ from, to }): Span[] => (from.seq < seq ? [[from.at, untilOf(to)]] : [])),
    )
  return answers.flatMap((answer): Span[] => {
    const { sent, status, headers, path } = answer
    const isShort =
      sent.seq < seq &&
      isOfWeather(path) &&
      (status === 0 || status === 500 || isStale.test(headers['cache-status'] ?? ''))
    return isShort ? [[sent.at, reachedBy(facts, answer).at]] : []
  })
}
const isStale = /ttl=-|fwd=stale|\d stale|provider_|timeline_exhausted|waited_too_long|key_share/
