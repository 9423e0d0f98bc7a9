// The log: one JSON object a line on standard output, and what each event of the parts looks like in it. Holds no key
// and no provider secret: parts hand over ids and sentences only.

import { type LevelWithSilent, type Logger, pino } from 'pino'

export type Log = Logger

/** A log and how to bring what it holds to its destination before the process ends. */
export type OpenLog = { readonly log: Log; flush(): void }

export const openLog = (level: LevelWithSilent): OpenLog => {
  const destination = pino.destination({ fd: 1, sync: false })
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    destination,
  )
  return {
    log,
    flush: () => {
      try {
        destination.flushSync()
      } catch {
        // Nothing was written yet, or standard output is gone: there is nobody left to tell.
      }
    },
  }
}
