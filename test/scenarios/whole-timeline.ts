// A timeline with the default horizon around an instant and a value everywhere: for tests and benchmarks that render or
// serve without a provider, and a cache that always has it. The values are made up.

import { type Calendar, hourMs, quarterHourMs, utcDayMs } from '../../src/common/calendar.ts'
import { layOut, type Timeline } from '../../src/weather/timeline.ts'

/** @param now ms since the epoch */
export const wholeTimeline = (now: number, calendar: Calendar): Timeline => {
  const quarter = Math.floor(now / quarterHourMs) * quarterHourMs
  const midnight = calendar.nextMidnight(now - 2 * utcDayMs)
  const timeline = layOut(
    now,
    { start: quarter - 4 * quarterHourMs, length: 110 },
    { start: midnight, length: 264 },
    { start: Math.floor((midnight + 6 * hourMs) / utcDayMs), length: 11 },
  )
  timeline.values.forEach((_, i) => {
    timeline.values[i] = Math.round(Math.sin(i) * 400) / 10
  })
  return timeline
}

/** A cache that answers every read from memory with this timeline, which is fresh for a day. */
export const alwaysFresh = (timeline: Timeline, now: () => number) => {
  const fetchedAt = now()
  const derived = { data: undefined, setBytes: () => {} }
  return {
    read: <Subject>(subject: Subject) => ({
      subject,
      value: timeline,
      readAt: now(),
      fetchedAt,
      freshUntil: fetchedAt + utcDayMs,
      outcome: 'hit' as const,
      source: 'memory' as const,
      forwarded: false,
      collapsed: false,
      derived,
    }),
  }
}
