// The log: one JSON object a line on standard output or in a file that can be reopened. Events are written immediately; lines of requests
// are buffered, and written at short intervals and at the end. Keys and secrets that slip into a line are hidden here.

import { closeSync, fstatSync, writeSync } from 'node:fs'
import { type LevelWithSilent, type Logger, pino, stdSerializers } from 'pino'
import { InputError, messageOf } from '../common/errors.ts'
import { putText } from '../common/flat-text.ts'
import { withoutKeys, withoutPlainKeys } from '../common/key-redaction.ts'
import { bounded, escapedJson } from '../common/outside-text.ts'
import { openToAppend } from '../common/regular-file.ts'
import { createLogWriter, type LogWriter } from './log-writer.ts'

export type Log = Logger

export type Lines = {
  /** Takes whole lines, each with its line break. */
  write(line: string): void
}

export type LineParts = {
  /** Takes a part of a line, in ASCII. */
  write(part: string): void
  /** The same as bytes, which take a third of the time. */
  copy(part: Uint8Array): void
  /** Takes its last part, with the line break. */
  end(part: Uint8Array): void
  /** The number of this process among those that write to the same destination, which each line has. */
  readonly process?: number | undefined
}

export type OpenLog = ReturnType<typeof openLog>

const bufferBytes = 64 * 1024
const bufferForMs = 250
// How long the end waits for a slow reader.
const flushForMs = 2_000
// The most memory that a stalled reader costs; later lines are lost, and the log says so.
const maxBytes = 64 * 1024 * 1024
// Up to this length, writes of several processes to a pipe do not mix (PIPE_BUF of Linux).
const atomicBytes = 4_096
const standardOutput = 1
const standardError = 2

/** Buffers the parts of lines until they are written together. */
const createLineBuffer = (send: (bytes: Buffer) => void) => {
  // Whole lines up to `lineBegins`, then the begun one; the writer has those up to `flushed`.
  let buffered = Buffer.alloc(0)
  let flushed = 0
  let used = 0
  let lineBegins = 0
  const flush = (): void => {
    if (flushed === lineBegins) return
    const lines = buffered.subarray(flushed, lineBegins)
    flushed = lineBegins
    send(lines)
  }
  const makeRoom = (bytes: number): void => {
    flush()
    const begun = buffered.subarray(lineBegins, used)
    buffered = Buffer.allocUnsafeSlow(Math.max(bufferBytes, 2 * (begun.length + bytes)))
    buffered.set(begun)
    flushed = 0
    lineBegins = 0
    used = begun.length
  }
  const write = (part: string): void => {
    if (used + part.length > buffered.length) makeRoom(part.length)
    used = putText(buffered, used, part)
  }
  const copy = (part: Uint8Array): void => {
    if (used + part.length > buffered.length) makeRoom(part.length)
    buffered.set(part, used)
    used += part.length
  }
  const end = (part: Uint8Array): void => {
    copy(part)
    lineBegins = used
  }
  return { write, copy, end, flush }
}

/**
 * @param file a path, or null for standard output
 * @param isShared whether other processes write to the same destination
 * @param number of this process among them, which its lines have
 * @throws InputError when it can't be opened
 */
export const openLog = (
  level: LevelWithSilent,
  file: string | null = null,
  isShared = false,
  number?: number,
) => {
  const writerTo = (fd: number): LogWriter =>
    createLogWriter(fd, {
      maxBytes,
      ...(isShared && file === null && fstatSync(fd).isFIFO() ? { chunkBytes: atomicBytes } : {}),
      endForMs: flushForMs,
      onFailed: reason => warnOnStderr(`the log can't be written, dropping lines until it can: ${reason}`),
      onDropped: (lines, why) => {
        dropped += lines
        unreported += lines
        reason = why
      },
      onWritten: () => {
        if (unreported === 0) return
        const lost = { dropped: unreported, reason }
        unreported = 0
        log.warn(lost, 'log lines dropped')
      },
    })
  let dropped = 0
  let unreported = 0
  let reason = ''
  let fd = file === null ? standardOutput : openFile(file)
  let writer = writerTo(fd)
  let closingPrevious: Promise<void> = Promise.resolve()
  const send = (bytes: Buffer): void => writer.write(withoutPlainKeys(bytes))

  const buffer = createLineBuffer(send)
  setInterval(buffer.flush, bufferForMs).unref()

  const log = createLog(
    level,
    {
      write: line => {
        buffer.flush()
        send(Buffer.from(line))
      },
    },
    number === undefined ? null : { process: number },
  )
  // A limit on the size of files is met like a full disk; without a listener it would end the process.
  process.on('SIGXFSZ', () => {})
  // The last requests may be logged after everything else has ended.
  process.once('exit', () => {
    writer.beSynchronous()
    buffer.flush()
  })
  const lines: LineParts = { write: buffer.write, copy: buffer.copy, end: buffer.end, process: number }
  return {
    log,
    /** The same destination for lines that may wait a little, in the same order. */
    lines,
    /** Lines that could not be written since the start. */
    dropped: (): number => dropped,
    /** Writes what is buffered before the process ends; waits a bounded time for a slow reader. */
    flush: async (): Promise<void> => {
      buffer.flush()
      const { promise, resolve } = Promise.withResolvers<void>()
      const timeout = setTimeout(resolve, flushForMs)
      await Promise.race([Promise.all([closingPrevious, writer.idle()]), promise])
      clearTimeout(timeout)
    },
    /** Continues in a new file of the same name, after its lines were rotated away. @throws InputError; the old file stays in use */
    reopen: (): void => {
      if (file === null) return
      // Lines gathered before belong to the old file.
      buffer.flush()
      const [previousFd, previous] = [fd, writer]
      try {
        fd = openFile(file)
      } catch (error) {
        // The previous file may be gone, and a line in it with it.
        warnOnStderr(`${messageOf(error)}; the log continues in the previous file`)
        throw error
      }
      writer = writerTo(fd)
      closingPrevious = previous
        .idle()
        .then(() => closeSync(previousFd))
        // Of a network file system, that its last lines could not be stored.
        .catch(error => warnOnStderr(`the log's former file could not be closed: ${messageOf(error)}`))
    },
  }
}

// Addresses and ids of clients are for the gateway's operators.
const mode = 0o640

const openFile = (path: string): number => {
  try {
    return openToAppend(path, mode)
  } catch (cause) {
    throw new InputError(`log.file is ${path}, which can't be written: ${messageOf(cause)}`, { cause })
  }
}

/** Standard error may go somewhere else than the log; where it goes nowhere either, the sentence is lost. */
const warnOnStderr = (sentence: string): void => {
  try {
    writeSync(standardError, `abohawa: ${sentence}\n`)
  } catch {}
}

// Names under which a secret may come in an object that is logged whole, at its top or one level below.
const secretNames = ['apiKey', 'password', 'sentinelPassword', 'token', 'authorization', 'cookie']
const secretHeaders = ['x-api-key', 'authorization', 'proxy-authorization', 'cookie']
const secretPaths = [
  ...secretNames.flatMap(name => [name, `*.${name}`]),
  ...secretHeaders.flatMap(name => [`headers["${name}"]`, `*.headers["${name}"]`]),
]

/**
 * @param lines takes each line as it is to be written
 * @param base the fields of every line
 */
export const createLog = (
  level: LevelWithSilent,
  lines: Lines,
  base: Readonly<Record<string, number>> | null = null,
): Log =>
  pino(
    {
      level,
      base,
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

const maxEntries = 50
const maxLevels = 5

/** A value with all text in it bounded, and without what is secret in that; errors are for their serializer. */
const boundedIn = (value: unknown, level = 0): unknown => {
  if (typeof value === 'string') return bounded(value)
  if (typeof value !== 'object' || value === null) return value
  if (level === maxLevels) return '…'
  if (level > 0 && 'toJSON' in value && typeof value.toJSON === 'function')
    return boundedIn(value.toJSON(), level + 1)
  // Left to its serializer, which calls this again.
  if (value instanceof Error) return value
  if (Array.isArray(value)) {
    const kept = value.slice(0, maxEntries).map(each => boundedIn(each, level + 1))
    return value.length > maxEntries ? [...kept, '…'] : kept
  }
  const all = Object.entries(value)
  const entries = all.slice(0, maxEntries).map(([name, each]) => [bounded(name), boundedIn(each, level + 1)])
  return Object.fromEntries(all.length > maxEntries ? [...entries, ['…', '…']] : entries)
}
