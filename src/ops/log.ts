// The log: one JSON object a line on standard output. What happens now and then is written at once; the lines of
// requests are gathered and written by the bufferful, at short intervals and at the end. Holds no key and no provider
// secret: parts hand over ids and sentences only.

import { type LevelWithSilent, type Logger, pino } from 'pino'

export type Log = Logger

/** Takes whole lines, each with its line break. */
export type Lines = { write(line: string): void }

export type OpenLog = {
  readonly log: Log
  /** The same destination for lines that may wait a little, and in the same order. */
  readonly lines: Lines
  /** Brings what is held to its destination before the process ends. */
  flush(): void
}

const gatherBytes = 32 * 1024
const gatherForMs = 250
// A reader that stands still costs so much memory; what comes then is lost, and the log says so.
const mostBytes = 64 * 1024 * 1024

export const openLog = (level: LevelWithSilent): OpenLog => {
  const destination = pino.destination({
    fd: 1,
    sync: false,
    minLength: gatherBytes,
    maxWrite: 2 * gatherBytes,
    periodicFlush: gatherForMs,
    maxLength: mostBytes,
  })
  const write = (line: string): void => {
    destination.write(line)
    destination.flush()
  }
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    { write },
  )
  let dropped = 0
  destination.on('drop', () => {
    dropped += 1
  })
  destination.on('drain', () => {
    if (dropped > 0) log.warn({ dropped }, 'lines of the log were lost: its reader stood still')
    dropped = 0
  })
  return {
    log,
    lines: destination,
    flush: () => {
      try {
        destination.flushSync()
      } catch {
        // Nothing was written yet, or standard output is gone: there is nobody left to tell.
      }
    },
  }
}
