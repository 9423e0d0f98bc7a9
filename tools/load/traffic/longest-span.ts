// Bounds how long traffic may last, because a clock that ticks through a gap of thousands of years never ends.

import { isoOf, utcDayMs } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'

/** A year and a month. */
const maxDays = 400

/** @throws InputError for traffic that lasts too long; instants in ms since the epoch */
export const checkSpan = (from: number, to: number): void => {
  if (to - from <= maxDays * utcDayMs) return
  const days = Math.ceil((to - from) / utcDayMs).toLocaleString('en-US')
  throw new InputError(
    `the traffic must last at most ${maxDays} days, but lasts ${days} days from ${isoOf(from)} to ${isoOf(to)}; \`abohawa traffic import\` takes a part with --from and --to, or shortens gaps with --longest-gap 10m`,
  )
}

/** @param ms from the first request of a run to its last @throws InputError for a run that lasts too long */
export const checkRun = (ms: number): void => {
  if (ms <= maxDays * utcDayMs) return
  const days = Math.ceil(ms / utcDayMs).toLocaleString('en-US')
  throw new InputError(
    `a run must last at most ${maxDays} days, but the last request is due after ${days} days; use --speed, --rate, --as-fast-as or --duration`,
  )
}
