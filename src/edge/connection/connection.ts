// One open connection: its socket, its requests, and what its client has shown. connections.ts keeps it up to date,
// unauthenticated.ts chooses among those without a good key.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { KeyMemo } from '../../metering/authentication.ts'
import type { Peer } from './client-address.ts'
import type { Http2Connection } from './http2.ts'
import type { PacedReading } from './paced-reading.ts'
import type { Task } from './turns.ts'

/** The part of a connection that the API reads. */
export type Connection = {
  /** Of the connections since the start, in order. */
  readonly number: number
  /** How many requests have come on it. */
  requestsCame: number
  /** The other end, once a request has come. */
  peer: Peer | undefined
  /** How many requests are not answered yet; undefined until the first. */
  requests: number | undefined
  /** The key that came with the last request. */
  readonly keyMemo: KeyMemo
  /** The client has shown a good key. */
  isAuthenticated: boolean
}

export type Tracked = Connection & {
  /** The socket that was accepted. */
  readonly socket: Socket
  /** The socket on which requests come: under TLS another one. */
  http: Socket
  /** Reading has begun. */
  isBegun: boolean
  /** The number of the tick before. */
  begunAfter: number
  /** Undefined while Node reads by itself. */
  reading: PacedReading | undefined
  /** Undefined where HTTP/1.1 is spoken. */
  http2: Http2Connection | undefined
  /** The connection's turn to be read, or to go on with the first of `held`. */
  readonly task: Task
  /** Requests that wait for a turn: each goes on when it is called. */
  readonly held: (() => void)[]
  /** By `performance.now()`, as are all instants here. */
  usedAt: number
  /** Requests that came without a good key. */
  refusals: number
  /** A request was refused, or more than one request was sent before a good key came. */
  isSuspect: boolean
  /** The last request, until it is answered and known to be whole. */
  last: IncomingMessage | undefined
  /** Set once no further request is taken. */
  whenAnswered: (() => void) | undefined
  /** When the client ended its side; Infinity until then. */
  endedAt: number
  /** How much the client had taken when that last changed, and when it did. */
  taken: number
  takenAt: number
}

/** Requests that are not answered yet, those that HTTP/2 holds back included. */
export const depthOf = (connection: Tracked | undefined): number =>
  (connection?.requests ?? 0) + (connection?.http2?.waiting ?? 0)

export const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
