// The HTTP/1.1 connections of one sender, with one request at a time each. Responses are parsed here, because a client library costs
// more per request than a fast target (docs/decisions/load-tools.md). A request is sent once more if the server closed a kept
// connection before reading it.

import type { Socket } from 'node:net'
import { createCapacity, isGeneratorError, reasonOf } from './generator-errors.ts'
import { type CacheFacts, headOf, type ResponseHead } from './response-head.ts'
import type { RequestForm } from './schedule.ts'
import { connectTo, type Target } from './target.ts'

export type OutgoingRequest = {
  readonly form: RequestForm
  readonly key: string | undefined
  readonly etag: string | undefined
  readonly keepsBody: boolean
  /** Whether it was sent a second time. */
  again: boolean
}

export type Answer = {
  readonly status: number
  readonly head: CacheFacts
  /** Received bytes, head and body. */
  readonly bytes: number
  /** As received; undefined unless `keepsBody`. */
  readonly body: Buffer | undefined
}

export type PoolEvents<Sent> = {
  onAnswer(sent: Sent, answer: Answer): void
  onFailure(sent: Sent, reason: string): void
}

export type ConnectionPool<Sent> = {
  /** Sends one request on a connection; undefined where none is free and no more may be opened. */
  take(): ((request: Sent) => void) | undefined
  /** The requests in flight, oldest first, each with a function that ends it. */
  readonly busy: ReadonlyMap<Sent, (reason: string) => void>
  close(): void
}

// Opened before any is reused, because processes that share a port are given connections, not requests.
const fewestOpen = 16
const longestHead = 65_536
// As strict as Node's parser: no blanks, no sign.
const chunkSize = /^[\da-f]{1,13}(?:;[\t\x20-\x7e\x80-\xff]*)?$/i
const trailer = /^[\w!#$%&'*+.^`|~-]+:[\t\x20-\x7e\x80-\xff]*$/
const none = Buffer.alloc(0)
// Instead of the length of a body.
const [byChunks, untilClose] = [-1, -2]

export const http1Pool = <Sent extends OutgoingRequest>(
  target: Target,
  most: number,
  events: PoolEvents<Sent>,
): ConnectionPool<Sent> => {
  const capacity = createCapacity(most)
  const pool: Pool<Sent> = {
    ...{ target, capacity, events, free: [], busy: new Map(), open: new Set() },
    connect: () => new Connection(pool).send,
  }
  const { free, busy, open } = pool
  return {
    busy,
    take: () => {
      const isFew = open.size < fewestOpen && capacity.allows(open.size)
      return (isFew ? undefined : free.shift()) ?? (capacity.allows(open.size) ? pool.connect() : undefined)
    },
    close: () => {
      for (const { end } of [...open]) end('closed')
    },
  }
}

type Send<Sent> = (request: Sent) => void

/** The state that a pool shares with its connections. */
type Pool<Sent extends OutgoingRequest> = {
  readonly target: Target
  readonly capacity: ReturnType<typeof createCapacity>
  readonly events: PoolEvents<Sent>
  /** First in, first out. */
  readonly free: Send<Sent>[]
  readonly busy: Map<Sent, (reason: string) => void>
  readonly open: Set<Connection<Sent>>
  connect(): Send<Sent>
}

class Connection<Sent extends OutgoingRequest> {
  readonly #pool: Pool<Sent>
  readonly #socket: Socket
  #inFlight: Sent | undefined
  #head: ResponseHead | undefined
  #pending: Buffer = none
  #bytes = 0
  #left = 0
  // For a chunked response: the expected part, and the missing bytes of the current chunk.
  #next: 'size' | 'data' | 'data end' | 'trailer' = 'size'
  #dataLeft = 0
  #trailerBytes = 0
  #kept: Buffer[] = []
  #answers = 0
  #isOver = false

  constructor(pool: Pool<Sent>) {
    this.#pool = pool
    this.#socket = connectTo(pool.target, chunk => this.#read(chunk))
    this.#socket.setNoDelay(true)
    this.#socket.on('error', error => this.end(reasonOf(error)))
    this.#socket.on('end', () => this.end('closed'))
    this.#socket.on('close', () => this.end('closed'))
    pool.open.add(this)
  }

  readonly send = (request: Sent): void => {
    this.#inFlight = request
    this.#pool.busy.set(request, this.end)
    this.#socket.write(headText(this.#pool.target, request), 'latin1')
  }

  /** Ends the connection, and the request in flight for this reason. */
  readonly end = (reason: string): void => {
    if (this.#isOver) return
    this.#close()
    const { free, open, busy, capacity, events, connect } = this.#pool
    const at = free.indexOf(this.send)
    if (at >= 0) free.splice(at, 1)
    if (isGeneratorError(reason)) capacity.limited(open.size)
    const request = this.#inFlight
    if (!request) return
    if (this.#head !== undefined && this.#left === untilClose && reason === 'closed') {
      this.#answered(this.#head)
      return
    }
    this.#inFlight = undefined
    busy.delete(request)
    const isUnread = this.#bytes === 0 && this.#answers > 0 && (reason === 'reset' || reason === 'closed')
    if (isUnread && !request.again) {
      request.again = true
      connect()(request)
    } else events.onFailure(request, reason)
  }

  #close(): void {
    this.#isOver = true
    this.#pool.open.delete(this)
    this.#socket.destroy()
  }

  #answered(head: ResponseHead): void {
    const request = this.#inFlight as Sent
    const body = request.keepsBody ? Buffer.concat(this.#kept) : undefined
    const answer = { status: head.status, head, bytes: this.#bytes, body }
    this.#inFlight = undefined
    this.#head = undefined
    this.#bytes = 0
    this.#kept = []
    this.#answers += 1
    this.#pool.busy.delete(request)
    if (head.closes && !this.#isOver) this.#close()
    else if (!this.#isOver) this.#pool.free.push(this.send)
    this.#pool.events.onAnswer(request, answer)
  }

  #read(chunk: Buffer): void {
    if (this.#isOver) return
    if (!this.#inFlight) {
      if (chunk.length > 0) this.end('protocol')
      return
    }
    this.#bytes += chunk.length
    let rest = chunk
    while (this.#head === undefined) {
      if (this.#pending.length > 0) {
        rest = Buffer.concat([this.#pending, rest])
        this.#pending = none
      }
      const headEnd = rest.indexOf('\r\n\r\n')
      if (headEnd < 0) {
        this.#wait(rest)
        return
      }
      const found = headOf(rest.toString('latin1', 0, headEnd + 4))
      // No request asks for another protocol.
      if (!found || found.status === 101) {
        this.end('protocol')
        return
      }
      rest = rest.subarray(headEnd + 4)
      if (found.status >= 200) {
        this.#head = found
        this.#left = bodyLength(found, this.#inFlight.form.method === 'HEAD')
      }
    }
    if (this.#left === byChunks) this.#readChunks(rest, this.#head)
    else if (this.#left === untilClose) this.#keep(rest)
    else if (rest.length > this.#left) this.end('protocol')
    else {
      this.#keep(rest)
      this.#left -= rest.length
      if (this.#left === 0) this.#answered(this.#head)
    }
  }

  #wait(rest: Buffer): void {
    if (rest.length > longestHead) this.end('protocol')
    else this.#pending = Buffer.from(rest)
  }

  #keep(part: Buffer): void {
    if (this.#inFlight?.keepsBody && part.length > 0) this.#kept.push(Buffer.from(part))
  }

  /** RFC 9112. Bytes after the last chunk are a protocol error. */
  #readChunks(part: Buffer, head: ResponseHead): void {
    let rest = this.#pending.length > 0 ? Buffer.concat([this.#pending, part]) : part
    this.#pending = none
    for (;;) {
      if (this.#next === 'data') {
        const data = rest.subarray(0, this.#dataLeft)
        this.#keep(data)
        this.#dataLeft -= data.length
        if (this.#dataLeft > 0) return
        rest = rest.subarray(data.length)
        this.#next = 'data end'
      }
      const lineEnd = rest.indexOf('\r\n')
      if (lineEnd < 0) {
        this.#wait(rest)
        return
      }
      const line = rest.toString('latin1', 0, lineEnd)
      rest = rest.subarray(lineEnd + 2)
      if (this.#next === 'size' && chunkSize.test(line)) {
        this.#dataLeft = Number.parseInt(line, 16)
        this.#next = this.#dataLeft === 0 ? 'trailer' : 'data'
      } else if (this.#next === 'data end' && line === '') this.#next = 'size'
      else if (this.#next === 'trailer' && line === '' && rest.length === 0) {
        this.#next = 'size'
        this.#trailerBytes = 0
        this.#answered(head)
        return
      } else if (this.#next === 'trailer' && trailer.test(line) && this.#trailerBytes < longestHead)
        this.#trailerBytes += line.length
      else {
        this.end('protocol')
        return
      }
    }
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
