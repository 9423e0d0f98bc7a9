// A timeline with the default horizon around an instant and a value everywhere: for tests and benchmarks that render or
// serve without a provider. The values are made up.

import { type Calendar, hourMs, quarterHourMs, utcDayMs } from '../../src/calendar.ts'
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
