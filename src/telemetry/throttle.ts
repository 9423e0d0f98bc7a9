// Limits repeated log lines: so many a minute for each subject, and the first one of the next minute says how many were left out.

import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'

/** A field for the line: how many were left out in the minutes before, if any. */
type LeftOut = { readonly leftOut?: number }

/** Calls `write` if the subject has not had its share of this minute. */
export type Throttle = (subject: string, write: (left: LeftOut) => void) => void

/** @param perMinute how often a subject is written about; subjects are few and given by the program */
export const createThrottle = (clock: Clock, perMinute = 1): Throttle => {
  const subjects = new Map<string, { minute: number; written: number; leftOut: number }>()
  return (subject, write) => {
    const minute = Math.floor(clock.now() / minuteMs)
    const share = subjects.get(subject) ?? { minute, written: 0, leftOut: 0 }
    subjects.set(subject, share)
    if (share.minute !== minute) Object.assign(share, { minute, written: 0 })
    if (share.written >= perMinute) {
      share.leftOut += 1
      return
    }
    share.written += 1
    const { leftOut } = share
    share.leftOut = 0
    write(leftOut > 0 ? { leftOut } : {})
  }
}
