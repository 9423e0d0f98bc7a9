// Writes the log's bytes to a file descriptor, one write at a time, and never stops the process: what cannot be written
// is dropped and counted, line by line. Lines come out whole and in order; one that a full disk cut is finished first
// when there is room. What stands in a line is for log.ts.

import { write, writeSync } from 'node:fs'

export type LogWriterOptions = {
  /** What may wait for a reader that is behind; lines beyond it are dropped. */
  readonly maxBytes: number
  /** The most bytes of whole lines in one write; a longer line goes by itself. Unbounded unless given. */
  readonly pieceBytes?: number
  /** How long the end waits for such a reader. */
  readonly flushForMs: number
  /** A write failed, and none since the last one that succeeded. */
  readonly onFailed: (reason: string) => void
  /** A write succeeded after lines were dropped. */
  readonly onDropped: (news: { readonly dropped: number; readonly reason: string }) => void
}

export type LogWriter = {
  /** Takes whole lines; their bytes must not be changed afterwards. */
  write(lines: Buffer): void
  /** Lines dropped since the start. */
  dropped(): number
  /** Resolves when everything is written or dropped, or the reader is too far behind. */
  flush(): Promise<void>
  /** The same at the very end, for what no write is under way for. */
  flushNow(): void
  /**
   * Writes to another descriptor from the next line on. The rest of a line that a full disk cut is dropped.
   * @param onIdle called with the former one once nothing is written to it any more
   */
  switchTo(fd: number, onIdle: (former: number) => void): void
}

const newline = 0x0a
// A descriptor that does not block says so while its reader is behind.
const retryAfterMs = 10
// Of what waits, so much is put together for a write.
const writeBytes = 256 * 1024
const readerIsBehind = 'its reader is behind'

export const createLogWriter = (
  firstFd: number,
  { maxBytes, pieceBytes = Number.POSITIVE_INFINITY, flushForMs, onFailed, onDropped }: LogWriterOptions,
): LogWriter => {
  let fd = firstFd
  let next: { readonly fd: number; readonly onIdle: (former: number) => void } | undefined
  let queue: Buffer[] = []
  let queuedBytes = 0
  let isWriting = false
  // What is left of a line that was cut: it is written before anything else.
  let cut: Buffer | undefined
  let hasFailed = false
  let dropped = 0
  let untold = 0
  let reason = ''
  let whenIdle: (() => void)[] = []

  const drop = (lines: Buffer, why: string): void => {
    const count = linesIn(lines)
    dropped += count
    untold += count
    reason = why
  }
  const succeeded = (): void => {
    hasFailed = false
    // A reader that is still behind would get it again and again.
    if (untold === 0 || queue.length > 0) return
    const news = { dropped: untold, reason }
    untold = 0
    onDropped(news)
  }
  /** The rest of a line that was begun stays; all other lines are dropped. */
  const failed = (rest: Buffer, isBegun: boolean, error: NodeJS.ErrnoException): void => {
    const ends = isBegun ? rest.indexOf(newline) + 1 : 0
    cut = ends > 0 ? rest.subarray(0, ends) : undefined
    drop(rest.subarray(ends), error.message)
    for (const lines of queue) drop(lines, error.message)
    queue = []
    queuedBytes = 0
    if (hasFailed) return
    hasFailed = true
    onFailed(error.message)
  }
  const isBegunAt = (bytes: Buffer, at: number, wasCut: boolean): boolean =>
    at === 0 ? wasCut : bytes[at - 1] !== newline

  /** What is written next, in one piece. */
  const take = (): { bytes: Buffer; wasCut: boolean } | undefined => {
    let count = 0
    let length = 0
    do length += queue[count]?.length ?? 0
    while (++count < queue.length && length + (queue[count]?.length ?? 0) <= writeBytes)
    const parts = queue.splice(0, count)
    queuedBytes -= length
    const wasCut = cut !== undefined
    if (cut) parts.unshift(cut)
    cut = undefined
    const [first] = parts
    return first && { bytes: parts.length === 1 ? first : Buffer.concat(parts), wasCut }
  }

  /** Between two writes: each is of whole lines. */
  const switchOver = (): void => {
    if (!next) return
    const former = fd
    const { onIdle } = next
    fd = next.fd
    next = undefined
    if (cut) drop(cut, 'the file was changed while its disk was full')
    cut = undefined
    onIdle(former)
  }
  const idle = (): void => {
    isWriting = false
    for (const done of whenIdle) done()
    whenIdle = []
  }
  const writeNext = (): void => {
    switchOver()
    // A cut line alone waits for company: it is tried again with the next line.
    const taken = queue.length > 0 ? take() : undefined
    if (taken) writeFrom(taken.bytes, 0, taken.wasCut)
    else idle()
  }
  const writeFrom = (bytes: Buffer, at: number, wasCut: boolean): void => {
    isWriting = true
    write(fd, bytes, at, pieceAt(bytes, at, pieceBytes), null, (error, written) => {
      if (error && isBehind(error)) setTimeout(writeFrom, retryAfterMs, bytes, at, wasCut).unref()
      else if (error) {
        failed(bytes.subarray(at), isBegunAt(bytes, at, wasCut), error)
        switchOver()
        idle()
      } else if (at + written < bytes.length) writeFrom(bytes, at + written, wasCut)
      else {
        succeeded()
        writeNext()
      }
    })
  }

  return {
    write: lines => {
      if (queuedBytes + lines.length > maxBytes) {
        drop(lines, readerIsBehind)
        return
      }
      queue.push(lines)
      queuedBytes += lines.length
      if (!isWriting) writeNext()
    },
    dropped: () => dropped,
    flush: async () => {
      if (!isWriting) return
      const written = Promise.withResolvers<void>()
      whenIdle.push(written.resolve)
      const patience = setTimeout(written.resolve, flushForMs)
      await written.promise
      clearTimeout(patience)
    },
    flushNow: () => {
      // Written past a write that waits for its reader, the rest would come out torn and out of order.
      if (isWriting) return
      const deadline = performance.now() + flushForMs
      for (let taken = take(); taken; taken = take())
        for (let at = 0; at < taken.bytes.length; )
          try {
            at += writeSync(fd, taken.bytes, at, pieceAt(taken.bytes, at, pieceBytes))
          } catch (error) {
            // Nothing is left to report it to.
            if (!isBehind(error as NodeJS.ErrnoException) || performance.now() > deadline) return
            Atomics.wait(pauses, 0, 0, retryAfterMs)
          }
    },
    switchTo: (other, onIdle) => {
      // One that nothing was written to is let go of again.
      const unused = next
      next = { fd: other, onIdle }
      if (unused) unused.onIdle(unused.fd)
      if (!isWriting) switchOver()
    },
  }
}

// For a pause at the end, when no timer runs any more.
const pauses = new Int32Array(new SharedArrayBuffer(4))

/** The length of the piece that begins there: as many whole lines as it may have, or one that is longer. */
const pieceAt = (bytes: Buffer, at: number, most: number): number => {
  if (bytes.length - at <= most) return bytes.length - at
  const last = bytes.lastIndexOf(newline, at + most - 1)
  const end = last >= at ? last : bytes.indexOf(newline, at)
  return (end === -1 ? bytes.length : end + 1) - at
}

const isBehind = ({ code }: NodeJS.ErrnoException): boolean => code === 'EAGAIN' || code === 'EBUSY'

const linesIn = (bytes: Buffer): number => {
  let count = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count += 1
  return count
}
