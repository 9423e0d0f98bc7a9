// A connection as each request passes it: which one a request came on, and what is known of it. connections.ts counts, bounds
// and ends connections.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { KeyMemo } from '../../keys/authentication.ts'
import type { Peer } from './client-address.ts'

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
  /** What it is counted under; undefined where it is not, or not any more. */
  address: string | undefined
  isAuthenticated: boolean
  /** It ends behind a request that came: those behind that one are not taken, nor counted for their key. */
  isEnding: boolean
  /** How many requests have come on it. */
  requestsCame: number
  /** Of those, how many are begun and not answered yet. */
  requests: number
  /** Of those, how many are for a list of places. */
  lists: number
  /** Requests that wait for those; undefined for none. */
  waiting: Waiting[] | undefined
  /** How many were answered without a good key. */
  refusals: number
  /** The last request that has a body, which the API does not read. */
  withBody: IncomingMessage | undefined
  /** What is not read from while too many requests wait. */
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
