// The connections of one sender over HTTP/1.1, each with one request at a time: heads that are ready are written to sockets, and
// answers are read by hand, because a client library spends more on each request than a fast target does
// (docs/decisions/load-tools.md). Opens some connections at once and more as they are needed, hands out the free ones in turn, and
// sends a request again once when the server has closed a kept connection before it read it, as every client does. Times nothing out.

import { createCapacity, isGeneratorError, reasonOf } from './generator-errors.ts'
import { type CacheFacts, headOf, type ResponseHead } from './response-head.ts'
import type { RequestForm } from './schedule.ts'
import { connectTo, type Target } from './target.ts'

export type OutgoingRequest = {
  readonly form: RequestForm
  readonly key: string | undefined
  readonly etag: string | undefined
  readonly keepsBody: boolean
  /** Whether it is on its second connection. */
  again: boolean
}

export type Answer = {
  readonly status: number
  readonly head: CacheFacts
  /** As received, head and body. */
  readonly bytes: number
  /** The body as received, where it was to be kept. */
  readonly body: Buffer | undefined
}

/** After each of them a connection can take a request. */
export type PoolEvents<Sent> = {
  onAnswer(sent: Sent, answer: Answer): void
  onFailure(sent: Sent, reason: string): void
}

export type ConnectionPool<Sent> = {
  /** A connection that takes one request; undefined where none is free and no more may be opened. */
  take(): ((request: Sent) => void) | undefined
  /** The requests in flight, the oldest first, each with what ends it for a reason. */
  readonly busy: ReadonlyMap<Sent, (reason: string) => void>
  close(): void
}

// So many are open before one is used again: processes that share a port get connections, and not requests.
const fewestOpen = 16
const longestHead = 65_536
// No blanks and no sign: as strict as Node's own parser. No file of a target is above 4 PiB.
const chunkSize = /^[\da-f]{1,13}(?:;[\t\x20-\x7e\x80-\xff]*)?$/i
const trailer = /^[\w!#$%&'*+.^`|~-]+:[\t\x20-\x7e\x80-\xff]*$/
const none = Buffer.alloc(0)
// In place of the length of a body.
const [byChunks, untilClose] = [-1, -2]

export const http1Pool = <Sent extends OutgoingRequest>(
  target: Target,
  most: number,
  events: PoolEvents<Sent>,
): ConnectionPool<Sent> => {
  const capacity = createCapacity(most)
  // The one that was free first comes next.
  const free: ((request: Sent) => void)[] = []
  const busy = new Map<Sent, (reason: string) => void>()
  const open = new Set<(reason: string) => void>()

  const openConnection = () => {
    // The request in flight, and its answer so far.
    let inFlight: Sent | undefined
    let head: ResponseHead | undefined
    let pending: Buffer = none
    let bytes = 0
    let left = 0
    // Of an answer in chunks: what comes next, and how much of the data is to come.
    let next: 'size' | 'data' | 'data end' | 'trailer' = 'size'
    let dataLeft = 0
    let trailerBytes = 0
    let kept: Buffer[] = []
    let answers = 0
    let isOver = false

    const close = (): void => {
      isOver = true
      open.delete(end)
      socket.destroy()
    }

    const end = (reason: string): void => {
      if (isOver) return
      close()
      const at = free.indexOf(send)
      if (at >= 0) free.splice(at, 1)
      if (isGeneratorError(reason)) capacity.limited(open.size)
      const of = inFlight
      if (!of) return
      if (head !== undefined && left === untilClose && reason === 'closed') {
        answered(head)
        return
      }
      inFlight = undefined
      busy.delete(of)
      if (bytes === 0 && answers > 0 && !of.again && (reason === 'reset' || reason === 'closed')) {
        of.again = true
        openConnection()(of)
      } else events.onFailure(of, reason)
    }

    const answered = (of: ResponseHead): void => {
      const sent = inFlight as Sent
      const answer = {
        status: of.status,
        head: of,
        bytes,
        body: sent.keepsBody ? Buffer.concat(kept) : undefined,
      }
      inFlight = undefined
      head = undefined
      bytes = 0
      kept = []
      answers += 1
      busy.delete(sent)
      if (of.closes && !isOver) close()
      else if (!isOver) free.push(send)
      events.onAnswer(sent, answer)
    }

    const read = (chunk: Buffer): void => {
      if (isOver) return
      if (!inFlight) {
        if (chunk.length > 0) end('protocol')
        return
      }
      bytes += chunk.length
      let rest = chunk
      while (head === undefined) {
        if (pending.length > 0) {
          rest = Buffer.concat([pending, rest])
          pending = none
        }
        const headEnd = rest.indexOf('\r\n\r\n')
        if (headEnd < 0) {
          wait(rest)
          return
        }
        const found = headOf(rest.toString('latin1', 0, headEnd + 4))
        // The protocol is changed on request alone.
        if (!found || found.status === 101) {
          end('protocol')
          return
        }
        rest = rest.subarray(headEnd + 4)
        if (found.status >= 200) {
          head = found
          left = bodyLength(found, inFlight.form.method === 'HEAD')
        }
      }
      if (left === byChunks) readChunks(rest, head)
      else if (left === untilClose) keep(rest)
      else if (rest.length > left) end('protocol')
      else {
        keep(rest)
        left -= rest.length
        if (left === 0) answered(head)
      }
    }

    const wait = (rest: Buffer): void => {
      if (rest.length > longestHead) end('protocol')
      else pending = Buffer.from(rest)
    }

    const keep = (part: Buffer): void => {
      if (inFlight?.keepsBody && part.length > 0) kept.push(Buffer.from(part))
    }

    /** Chunks as RFC 9112 has them; a line that is not yet whole waits in `pending`. What is behind the last one belongs to nobody. */
    const readChunks = (part: Buffer, of: ResponseHead): void => {
      let rest = pending.length > 0 ? Buffer.concat([pending, part]) : part
      pending = none
      for (;;) {
        if (next === 'data') {
          const data = rest.subarray(0, dataLeft)
          keep(data)
          dataLeft -= data.length
          if (dataLeft > 0) return
          rest = rest.subarray(data.length)
          next = 'data end'
        }
        const lineEnd = rest.indexOf('\r\n')
        if (lineEnd < 0) {
          wait(rest)
          return
        }
        const line = rest.toString('latin1', 0, lineEnd)
        rest = rest.subarray(lineEnd + 2)
        if (next === 'size' && chunkSize.test(line)) {
          dataLeft = Number.parseInt(line, 16)
          next = dataLeft === 0 ? 'trailer' : 'data'
        } else if (next === 'data end' && line === '') next = 'size'
        else if (next === 'trailer' && line === '' && rest.length === 0) {
          next = 'size'
          trailerBytes = 0
          answered(of)
          return
        } else if (next === 'trailer' && trailer.test(line) && trailerBytes < longestHead)
          trailerBytes += line.length
        else {
          end('protocol')
          return
        }
      }
    }

    const send = (sent: Sent): void => {
      inFlight = sent
      busy.set(sent, end)
      socket.write(headText(target, sent), 'latin1')
    }

    const socket = connectTo(target, read)
    socket.setNoDelay(true)
    socket.on('error', error => end(reasonOf(error)))
    socket.on('end', () => end('closed'))
    socket.on('close', () => end('closed'))
    open.add(end)
    return send
  }

  return {
    busy,
    take: () => {
      const isFew = open.size < fewestOpen && capacity.allows(open.size)
      return (isFew ? undefined : free.shift()) ?? (capacity.allows(open.size) ? openConnection() : undefined)
    },
    close: () => {
      for (const end of [...open]) end('closed')
    },
  }
}

const bodyLength = ({ status, chunked, length }: ResponseHead, isHeadRequest: boolean): number => {
  if (isHeadRequest || status === 204 || status === 304) return 0
  if (chunked) return byChunks
  return length >= 0 ? length : untilClose
}

const headText = ({ authority, base }: Target, { form, key, etag }: OutgoingRequest): string =>
  `${form.method} ${base}${form.path} HTTP/1.1\r\nhost: ${authority}\r\n${
    form.accepts === undefined ? '' : `accept-encoding: ${form.accepts}\r\n`
  }${key === undefined ? '' : `x-api-key: ${key}\r\n`}${etag === undefined ? '' : `if-none-match: ${etag}\r\n`}\r\n`
