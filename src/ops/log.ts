// The log: one JSON object a line on standard output. What happens now and then is written at once; the lines of
// requests are gathered and written by the bufferful, at short intervals and at the end. Holds no key and no provider
// secret: parts hand over ids and sentences only, and what slips through all the same is hidden and cut here.

import { type LevelWithSilent, type Logger, pino, stdSerializers } from 'pino'
import { withoutKeys, withoutPlainKeys } from '../key-redaction.ts'
import { bounded, escapedJson } from '../outside-text.ts'

export type Log = Logger

/** Takes whole lines, each with its line break. */
export type Lines = { write(line: string): void }

export type OpenLog = {
  readonly log: Log
  /** The same destination for lines that may wait a little, and in the same order. */
  readonly lines: Lines
  /** Brings what is held to its destination before the process ends; waits for a reader that is behind, up to a bound. */
  flush(): Promise<void>
}

const gatherBytes = 64 * 1024
const gatherForMs = 250
// How long the end waits for a reader that is behind.
const flushForMs = 2_000
const flushPollMs = 5
// A reader that stands still costs so much memory; what comes then is lost, and the log says so.
const mostBytes = 64 * 1024 * 1024

export const openLog = (level: LevelWithSilent): OpenLog => {
  const destination = pino.destination({
    fd: 1,
    sync: false,
    contentMode: 'buffer',
    maxWrite: gatherBytes,
    maxLength: mostBytes,
  })
  // From the first write until everything is written.
  let writing = false
  destination.on('drain', () => {
    writing = false
  })
  const send = (bytes: Buffer): void => {
    writing = true
    // The types of the destination know text alone; in this mode it takes bytes.
    destination.write(withoutPlainKeys(bytes) as unknown as string)
  }

  // Lines are encoded where they will be written from, one by one: gathered as text they would be a rope that takes
  // longer to unroll than to write.
  let gathered = Buffer.allocUnsafeSlow(gatherBytes)
  let at = 0
  const handOver = (): void => {
    if (at === 0) return
    send(gathered.subarray(0, at))
    gathered = Buffer.allocUnsafeSlow(gatherBytes)
    at = 0
  }
  const gather = (line: string): void => {
    // A character takes three bytes at most.
    if (line.length * 3 > gatherBytes - at) handOver()
    if (line.length * 3 > gatherBytes) send(Buffer.from(line))
    else at += gathered.write(line, at)
  }
  setInterval(handOver, gatherForMs).unref()

  const log = createLog(level, {
    write: line => {
      handOver()
      send(Buffer.from(line))
    },
  })
  let dropped = 0
  destination.on('drop', () => {
    dropped += 1
  })
  destination.on('drain', () => {
    if (dropped > 0) log.warn({ dropped }, 'parts of the log were lost: its reader stood still')
    dropped = 0
  })
  const flushNow = (): void => {
    try {
      handOver()
      destination.flushSync()
    } catch {
      // Nothing was written yet, or standard output is gone: there is nobody left to tell.
    }
  }
  // A write may wait for the reader in the midst of a line. Written past it, the rest would be torn and out of order.
  const flush = async (): Promise<void> => {
    handOver()
    const deadline = performance.now() + flushForMs
    while (writing && performance.now() < deadline)
      await new Promise(resolve => setTimeout(resolve, flushPollMs))
    flushNow()
  }
  // The last answers may be told of after everything else has ended.
  process.once('exit', flushNow)
  return { log, lines: { write: gather }, flush }
}

// Names under which a secret may come in an object that is logged whole, at its top or one level below.
const secretNames = ['apiKey', 'password', 'sentinelPassword', 'authorization', 'cookie']
const secretHeaders = ['x-api-key', 'authorization', 'proxy-authorization', 'cookie']
const secretPaths = [
  ...secretNames.flatMap(name => [name, `*.${name}`]),
  ...secretHeaders.flatMap(name => [`headers["${name}"]`, `*.headers["${name}"]`]),
]

/** @param lines takes each line as it is to be written */
export const createLog = (level: LevelWithSilent, lines: Lines): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: label => ({ level: label }),
        log: fields => boundedIn(fields) as Record<string, unknown>,
      },
      serializers: { err: error => boundedIn(stdSerializers.err(error)) },
      redact: { paths: secretPaths, censor: '***' },
    },
    { write: line => lines.write(`${escapedJson(withoutKeys(line.slice(0, -1)))}\n`) },
  )

const mostEntries = 50
const mostLevels = 5

/** A value with all text in it bounded, and without what is secret in that; errors are for their serializer. */
const boundedIn = (value: unknown, level = 0): unknown => {
  if (typeof value === 'string') return bounded(value)
  if (typeof value !== 'object' || value === null) return value
  if (level === mostLevels) return '…'
  if (level > 0 && 'toJSON' in value && typeof value.toJSON === 'function')
    return boundedIn(value.toJSON(), level + 1)
  // Left to its serializer, which asks here again.
  if (value instanceof Error) return value
  if (Array.isArray(value)) return value.slice(0, mostEntries).map(each => boundedIn(each, level + 1))
  const entries = Object.entries(value).slice(0, mostEntries)
  return Object.fromEntries(entries.map(([name, each]) => [bounded(name), boundedIn(each, level + 1)]))
}
