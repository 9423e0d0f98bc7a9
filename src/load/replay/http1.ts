// One connection of HTTP/1.1 with one request at a time: writes heads that are ready and reads the answers. By hand on a
// socket, because a client library spends more on each request than a fast target does (docs/decisions/load-tools.md).

import type { Socket } from 'node:net'
import { codeOf, ownLimitOf } from './own-limits.ts'
import { headOf, type ResponseHead } from './response-head.ts'

export type Answer = {
  readonly head: ResponseHead
  /** As received, head and body. */
  readonly bytes: number
  /** The body as received, where it was to be kept. */
  readonly body: Buffer | undefined
}

export type ConnectionEvents = {
  /** The connection is over after one whose head says `closes`, without `onEnd`. */
  onAnswer(answer: Answer): void
  /** The connection is over; the request in flight, if there is one, has no answer. @param early no byte of one came */
  onEnd(reason: string, early: boolean): void
}

export type Connection = {
  /** @param keepsBody whether the answer has its body */
  send(head: string, isHead: boolean, keepsBody: boolean): void
  /** Ends it with a reason, which `onEnd` receives. */
  end(reason: string): void
}

const longestHead = 65_536
// No blanks and no sign: as strict as Node's own parser. No file of a target is above 4 PiB.
const chunkSize = /^[\da-f]{1,13}(?:;[\t\x20-\x7e\x80-\xff]*)?$/i
const trailer = /^[\w!#$%&'*+.^`|~-]+:[\t\x20-\x7e\x80-\xff]*$/
const none = Buffer.alloc(0)

/** @param open connects, and hands over what is received; the memory of a part is used again after the call */
export const createConnection = (
  open: (onData: (part: Buffer) => void) => Socket,
  events: ConnectionEvents,
): Connection => {
  // The request in flight.
  let isBusy = false
  let isHeadRequest = false
  let keeps = false
  // Its answer so far.
  let head: ResponseHead | undefined
  let pending: Buffer = none
  let bytes = 0
  let left = 0
  // Of an answer in chunks: what comes next, and how much of the data is to come.
  let next: 'size' | 'data' | 'data end' | 'trailer' = 'size'
  let dataLeft = 0
  let trailerBytes = 0
  let kept: Buffer[] = []
  let isOver = false

  const end = (reason: string): void => {
    if (isOver) return
    isOver = true
    socket.destroy()
    const isWhole = isBusy && head !== undefined && left === untilClose && reason === 'closed'
    if (isWhole) answered(head as ResponseHead)
    events.onEnd(reason, bytes === 0)
  }

  const answered = (of: ResponseHead): void => {
    if (left === untilClose) of.closes = true
    const answer = { head: of, bytes, body: keeps ? Buffer.concat(kept) : undefined }
    isBusy = false
    head = undefined
    bytes = 0
    kept = []
    if (of.closes) {
      isOver = true
      socket.destroy()
    }
    events.onAnswer(answer)
  }

  const read = (chunk: Buffer): void => {
    if (!isBusy) {
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
        if (rest.length > longestHead) end('protocol')
        else pending = Buffer.from(rest)
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
        left = bodyLength(found, isHeadRequest)
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

  const keep = (part: Buffer): void => {
    if (keeps && part.length > 0) kept.push(Buffer.from(part))
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
        if (rest.length > longestHead) end('protocol')
        else pending = Buffer.from(rest)
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

  const socket = open(part => {
    if (!isOver) read(part)
  })
  socket.setNoDelay(true)
  socket.on('error', (error: NodeJS.ErrnoException) => end(reasonOf(error)))
  socket.on('end', () => end('closed'))
  socket.on('close', () => end('closed'))

  return {
    send: (text, isHead, keepsBody) => {
      isBusy = true
      isHeadRequest = isHead
      keeps = keepsBody
      socket.write(text, 'latin1')
    },
    end,
  }
}

const byChunks = -1
const untilClose = -2

const bodyLength = ({ status, chunked, length }: ResponseHead, isHeadRequest: boolean): number => {
  if (isHeadRequest || status === 204 || status === 304) return 0
  if (chunked) return byChunks
  return length >= 0 ? length : untilClose
}

/** The reason of a failure as the result has it. */
export const reasonOf = (error: NodeJS.ErrnoException): string => {
  const code = codeOf(error)
  return ownLimitOf(error) ?? reasons[code] ?? (/CERT|TLS|SSL/.test(code) ? 'tls' : 'connection')
}
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ENOENT: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'name not found',
}
