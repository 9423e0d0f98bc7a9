// Writes the log's bytes to a file descriptor, one write at a time, and never stops the process: lines that can't be written
// are dropped and counted. Lines stay whole and in order: a line that a full disk cut is finished first when there is room.

import { writev, writevSync } from 'node:fs'
import { messageOf } from '../common/errors.ts'

export type LogWriterOptions = {
  /** The most bytes that may wait for a slow reader; lines beyond it are dropped. */
  readonly maxBytes: number
  /** The most bytes of whole lines in one write; a longer line is one write. */
  readonly chunkBytes?: number
  /** How long a synchronous write waits for a slow reader. */
  readonly endForMs: number
  /** The first write failed after one that succeeded. */
  readonly onFailed: (reason: string) => void
  readonly onDropped: (lines: number, reason: string) => void
  /** All that was given is written. */
  readonly onWritten: () => void
}

export type LogWriter = ReturnType<typeof createLogWriter>

const newline = 0x0a
// A non-blocking descriptor reports EAGAIN while its reader is slow.
const retryAfterMs = 10
const nothing = Buffer.alloc(0)

export const createLogWriter = (
  fd: number,
  { maxBytes, chunkBytes = 256 * 1024, endForMs, onFailed, onDropped, onWritten }: LogWriterOptions,
) => {
  // Whole lines, of which the first `at` bytes are written; after a failure these are the beginning of a cut line.
  let queue: Buffer[] = []
  let queuedBytes = 0
  let at = 0
  let isWriting = false
  let isSynchronous = false
  let hasFailed = false
  let whenIdle: (() => void)[] = []

  /** Keeps the rest of a line that was begun, and drops all other lines. */
  const failed = (error: Error): void => {
    const message = messageOf(error)
    const [first = nothing, ...others] = queue
    const end = at === 0 || first[at - 1] === newline ? at : first.indexOf(newline, at) + 1
    for (const lines of [first.subarray(end), ...others]) onDropped(linesIn(lines), message)
    queue = end === at ? [] : [first.subarray(0, end)]
    queuedBytes = end === at ? 0 : end
    if (end === at) at = 0
    if (!hasFailed) onFailed(message)
    hasFailed = true
  }
  const advance = (written: number): void => {
    at += written
    let count = 0
    for (let [first] = queue; first && at >= first.length; first = queue[count]) {
      at -= first.length
      queuedBytes -= first.length
      count += 1
    }
    queue.splice(0, count)
    if (at === 0) hasFailed = false
  }
  const idle = (): void => {
    isWriting = false
    for (const done of whenIdle) done()
    whenIdle = []
  }
  /** The lines of the next write. */
  const nextLines = (): Buffer[] => {
    const [first = nothing] = queue
    let count = 1
    for (let length = first.length - at; count < queue.length; count++) {
      length += queue[count]?.length ?? 0
      if (length > chunkBytes) break
    }
    return [first.subarray(at), ...queue.slice(1, count)]
  }
  const writeNext = (): void => {
    isWriting = true
    writev(fd, nextLines(), (error, written) => {
      if (error && isBehind(error)) setTimeout(writeNext, retryAfterMs).unref()
      else if (error) {
        failed(error)
        idle()
      } else {
        advance(written)
        // Before it is idle, because a notice of what was dropped is a line too.
        if (queue.length === 0) onWritten()
        if (queue.length > 0) writeNext()
        else idle()
      }
    })
  }
  const writeAllNow = (): void => {
    const deadline = performance.now() + endForMs
    while (queue.length > 0)
      try {
        advance(writevSync(fd, nextLines()))
      } catch (error) {
        // Nobody is left to report it to.
        if (!isBehind(error as NodeJS.ErrnoException) || performance.now() > deadline) return
        Atomics.wait(pauses, 0, 0, retryAfterMs)
      }
  }

  return {
    /** Takes whole lines; their bytes must not be changed afterwards. */
    write: (lines: Buffer): void => {
      if (queuedBytes + lines.length > maxBytes) {
        onDropped(linesIn(lines), 'its reader is too slow')
        return
      }
      queue.push(...chunksOf(lines, chunkBytes))
      queuedBytes += lines.length
      // Beside a running write, lines would be torn and out of order.
      if (!isWriting) isSynchronous ? writeAllNow() : writeNext()
    },
    /** Resolves when everything is written or dropped. */
    idle: async (): Promise<void> => {
      if (!isWriting) return
      const { promise, resolve } = Promise.withResolvers<void>()
      whenIdle.push(resolve)
      await promise
    },
    /** For the end of the process, when no callback runs any more: from now on `write` is synchronous. */
    beSynchronous: (): void => {
      isSynchronous = true
    },
  }
}

// For a pause at the end, when no timer runs any more.
const pauses = new Int32Array(new SharedArrayBuffer(4))

const isBehind = ({ code }: NodeJS.ErrnoException): boolean => code === 'EAGAIN' || code === 'EBUSY'

/** Chunks of whole lines, each as long as allowed, or one longer line. */
function* chunksOf(lines: Buffer, max: number): Generator<Buffer> {
  for (let at = 0; at < lines.length; ) {
    const last = lines.length - at <= max ? lines.length - 1 : lines.lastIndexOf(newline, at + max - 1)
    const until = last >= at ? last : lines.indexOf(newline, at)
    const end = until === -1 ? lines.length : until + 1
    yield lines.subarray(at, end)
    at = end
  }
}

const linesIn = (bytes: Buffer): number => {
  let count = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count += 1
  return count
}
