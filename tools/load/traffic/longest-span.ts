// How long traffic may last for commands that pass its whole time on a clock of their own: each second between two requests
// has timers, so that a gap of thousands of years never ends. One bound for all of them, said before the work begins.

import { isoOf, utcDayMs } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'

/** A year, and a month more. */
const maxDays = 400

/** @throws InputError for traffic that lasts too long; instants in ms since the epoch */
export const checkSpan = (from: number, to: number): void => {
  if (to - from <= maxDays * utcDayMs) return
  const days = Math.ceil((to - from) / utcDayMs).toLocaleString('en-US')
  throw new InputError(
    `the traffic lasts from ${isoOf(from)} to ${isoOf(to)}, which is ${days} days; allowed: at most ${maxDays} days, such as a part by \`abohawa traffic import --from … --to …\`, or with its gaps shortened by its --longest-gap 10m`,
  )
}

/** @param ms from the first request of a run to its last @throws InputError for a run that lasts too long */
export const checkRun = (ms: number): void => {
  if (ms <= maxDays * utcDayMs) return
  const days = Math.ceil(ms / utcDayMs).toLocaleString('en-US')
  throw new InputError(
    `the last request is due after ${days} days; allowed: at most ${maxDays} days, by --speed, --rate, --as-fast-as or --duration`,
  )
}
