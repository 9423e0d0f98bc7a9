// Writes the log's bytes to a file descriptor, one write at a time, and never stops the process: lines that cannot be written
// are dropped and counted. Writes whole lines in order; a line that a full disk cut is finished first when there is room.
// log.ts makes the lines.

import { writev, writevSync } from 'node:fs'

export type LogWriterOptions = {
  /** The most bytes that may wait for a slow reader; lines beyond it are dropped. */
  readonly maxBytes: number
  /** The most bytes of whole lines in one write; a longer line is a write of its own. */
  readonly chunkBytes?: number
  /** How long `flush` waits for such a reader. */
  readonly flushForMs: number
  /** The first write failed after one that succeeded. */
  readonly onFailed: (reason: string) => void
  /** A write succeeded after lines were dropped. */
  readonly onDropped: (lost: { readonly dropped: number; readonly reason: string }) => void
}

export type LogWriter = {
  /** Takes whole lines; their bytes must not be changed afterwards. */
  write(lines: Buffer): void
  /** Lines dropped since the start. */
  dropped(): number
  /** Resolves when everything is written or dropped, or the reader is too far behind. */
  flush(): Promise<void>
  /** For the end of the process, when no callback runs any more: from now on `write` is synchronous. */
  writeAtOnce(): void
  /**
   * Writes to another descriptor from the next line on. The rest of a line that a full disk cut is dropped.
   * @param onIdle called with the former descriptor once nothing is written to it any more
   */
  switchTo(fd: number, onIdle: (former: number) => void): void
}

const newline = 0x0a
// A non-blocking descriptor reports EAGAIN while its reader is slow.
const retryAfterMs = 10
const nothing = Buffer.alloc(0)

export const createLogWriter = (
  firstFd: number,
  { maxBytes, chunkBytes = 256 * 1024, flushForMs, onFailed, onDropped }: LogWriterOptions,
): LogWriter => {
  let fd = firstFd
  let next: { readonly fd: number; readonly onIdle: (former: number) => void } | undefined
  // Whole lines, of which the first `at` bytes are written; after a failure these are the beginning of a cut line.
  let queue: Buffer[] = []
  let queuedBytes = 0
  let at = 0
  let isWriting = false
  let isAtOnce = false
  let hasFailed = false
  let dropped = 0
  let unreported = 0
  let reason = ''
  let whenIdle: (() => void)[] = []

  const drop = (lines: Buffer, why: string): void => {
    const count = linesIn(lines)
    dropped += count
    unreported += count
    reason = why
  }
  const keep = (lines: Buffer): void => {
    queue = lines.length > 0 ? [lines] : []
    queuedBytes = lines.length
    if (lines.length === 0) at = 0
  }
  /** Keeps the rest of a line that was begun, and drops all other lines. */
  const failed = ({ message }: Error): void => {
    const [first = nothing, ...others] = queue
    const end = at === 0 || first[at - 1] === newline ? at : first.indexOf(newline, at) + 1
    for (const lines of [first.subarray(end), ...others]) drop(lines, message)
    keep(first.subarray(0, end === at ? 0 : end))
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
  const switchOver = (): void => {
    if (!next) return
    const former = fd
    const { onIdle } = next
    fd = next.fd
    next = undefined
    onIdle(former)
  }
  const idle = (): void => {
    isWriting = false
    // The rest of a cut line makes no sense in another file.
    if (next && queue[0]) {
      drop(queue[0].subarray(at), 'the file was changed while its disk was full')
      keep(nothing)
    }
    switchOver()
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
    if (at === 0) switchOver()
    writev(fd, nextLines(), (error, written) => {
      if (error && isBehind(error)) setTimeout(writeNext, retryAfterMs).unref()
      else if (error) {
        failed(error)
        idle()
      } else {
        advance(written)
        // Before `flush` resolves, because the drop notice is a line too.
        if (queue.length === 0) reportDropped()
        if (queue.length > 0) writeNext()
        else idle()
      }
    })
  }
  const writeAllNow = (): void => {
    const deadline = performance.now() + flushForMs
    while (queue.length > 0)
      try {
        advance(writevSync(fd, nextLines()))
      } catch (error) {
        // Nobody is left to report it to.
        if (!isBehind(error as NodeJS.ErrnoException) || performance.now() > deadline) return
        Atomics.wait(pauses, 0, 0, retryAfterMs)
      }
  }
  const reportDropped = (): void => {
    if (unreported === 0) return
    const lost = { dropped: unreported, reason }
    unreported = 0
    onDropped(lost)
  }

  return {
    write: lines => {
      if (queuedBytes + lines.length > maxBytes) {
        drop(lines, 'its reader is behind')
        return
      }
      queue.push(...chunksOf(lines, chunkBytes))
      queuedBytes += lines.length
      // Beside a running write, lines would be torn and out of order.
      if (!isWriting) isAtOnce ? writeAllNow() : writeNext()
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
    writeAtOnce: () => {
      isAtOnce = true
    },
    switchTo: (other, onIdle) => {
      // Releases a descriptor that nothing was written to.
      if (next) next.onIdle(next.fd)
      next = { fd: other, onIdle }
      if (!isWriting) idle()
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
