// A connection as each request passes it, and how a response whose bytes are ready is written: a head joined from cached text, and a
// body. Fastify's reply is hijacked, because sending a hit header by header would double its cost. The head goes into the private
// fields where Node keeps its own; choose-writer.ts checks at the start that the bytes are the same.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { giveBack, takeBuffer } from '../../common/buffer-pool.ts'
import { putText } from '../../common/flat-text.ts'
import type { KeyMemo } from '../../keys/authentication.ts'
import type { Peer } from './client-address.ts'

// An import would load Node's client for fetch too, a twentieth of a start.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** A request that waits for those before it; `begin` is called when it is its turn. */
export type Waiting = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly begin: (request: IncomingMessage, response: ServerResponse) => void
}

export type Connection = {
  /** Of the connections since the start, in order. */
  readonly number: number
  /** Among the open connections; `notOpen` otherwise. */
  place: number
  /** The socket that was accepted; that of a TLS session is another one. */
  readonly socket: Socket
  /** Undefined where HTTP/1.1 is spoken. */
  session: ServerHttp2Session | undefined
  /** The other end, once a request has come. */
  peer: Peer | undefined
  /** The key that came with the last request. */
  readonly keyMemo: KeyMemo
  /** The address that it counts under; undefined while it does not count. */
  address: string | undefined
  isAuthenticated: boolean
  /** It ends after a request that came; later ones are neither answered nor counted. */
  isEnding: boolean
  requestsCame: number
  /** Of those, how many are begun and not answered yet. */
  requests: number
  /** Of those, how many are for a list of places. */
  lists: number
  /** Requests that wait for those; undefined for none. */
  waiting: Waiting[] | undefined
  /** How many were answered without a good key. */
  refusals: number
  /** It counts for its address for a while after its end. */
  isFlooding: boolean
  /** The request with a body, which the API does not read; it is the last one. Undefined for none. */
  unreadBody: IncomingMessage | undefined
  /** The socket that is not read while too many requests wait. */
  paused: Socket | undefined
  /** Set once no further request is taken. */
  whenAnswered: (() => void) | undefined
  /** Called when a request is answered or its client is gone; undefined while nothing waits for it. */
  afterAnswer: ((connection: Connection) => void) | undefined
}

export const notOpen = -1

// On the socket or the session itself, because it is looked up with every request.
export const mark: unique symbol = Symbol('connection')
/** What carries requests: a socket, or a session of HTTP/2. */
export type Carrier = object & { [mark]?: Connection }

/** Whether a request came, or a response goes out, over HTTP/2, which knows no header `connection`. */
export const isHttp2 = <Given extends IncomingMessage | ServerResponse>(
  given: Given,
): given is Given & (Given extends IncomingMessage ? Http2ServerRequest : Http2ServerResponse) =>
  'stream' in given

/** The connection of a request; undefined for the first one of a connection that was not marked when it was accepted. */
export const connectionOf = (request: IncomingMessage): Connection | undefined => carrierOf(request)[mark]

/** A stream of HTTP/2 has no session where it was given up before it came here. */
export const carrierOf = (request: IncomingMessage): Carrier =>
  isHttp2(request) ? (request.stream.session ?? request) : request.socket

export type Chunks = readonly [Buffer, ...Buffer[]]

export const lengthOf = (chunks: Chunks): number => {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}

/**
 * Writes a whole response. A head must hold no value from outside, because it is not checked again.
 * @param head status line and headers that stay the same, each with its CRLF, as `headOf` makes them
 * @param own per-response headers, each with its CRLF, as parts that are joined; another call may bring the same list
 * @param connection the headers of the connection with the line that ends a head: `keptLines`, or `closedLines` for its last response
 */
export type WriteReady = (
  response: ServerResponse,
  status: number,
  head: string,
  own: readonly string[],
  connection: string,
  body?: Chunks,
) => void

export const headOf = (status: number, headers: string): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}`

/** The headers of a connection that may be idle for so long before its next request, with the empty line that ends a head. */
export const keptLines = (keepAliveTimeoutMs: number): string =>
  `connection: keep-alive\r\nkeep-alive: timeout=${Math.floor(keepAliveTimeoutMs / 1000)}\r\n\r\n`
/** Those of a connection that ends. */
export const closedLines = 'connection: close\r\n\r\n'

/** The private fields of a head that Node has written; `writeHead` sets the same. */
export type WithHead = ServerResponse & {
  _header: string
  _headerSent: boolean
  _last: boolean
  _hasBody: boolean
}

/** Through Node's private fields. */
export const writeDirectly: WriteReady = (given, status, head, own, connection, body) => {
  const response = given as WithHead
  if (response._header) return
  response.statusCode = status
  if (response.destroyed) return
  // Node has set it where the client has ended its side.
  if (connection === closedLines) response._last = true
  if (!body || !response._hasBody) {
    response._header = head + own.join('') + connection
    response._hasBody = false
    response.end()
    return
  }
  // Only that there is one matters from here on. Joining all of it would copy what stays the same.
  response._header = head
  response._headerSent = true
  let length = head.length + connection.length + lengthOf(body)
  for (const part of own) length += part.length
  const { socket } = response
  // A slow client may keep its bytes for minutes, and a response may wait for the one before it, so they take no more memory than
  // they need.
  const isBehind = socket === null || socket.writableLength > 0
  const bytes = isBehind ? Buffer.allocUnsafeSlow(length) : takeBuffer(length)
  let used = putText(bytes, 0, head)
  for (const part of own) used = putText(bytes, used, part)
  used = putText(bytes, used, connection)
  for (const chunk of body) {
    bytes.set(chunk, used)
    used += chunk.length
  }
  // One write of one chunk costs a system call less than a list of them.
  const whole = bytes.subarray(0, length)
  if (!isBehind && 'encrypted' in socket) {
    response.end(whole, (error?: Error | null) => {
      if (!error) giveBack(bytes)
    })
    return
  }
  response.end(whole)
  if (!isBehind && response.writableLength === 0) giveBack(bytes)
}
