// The state of a request: while it runs, as `request.state`, which the hooks of request.ts fill; and at its end, for log and metrics.

import type { ResponseName } from '../common/endpoints.ts'
import type { Client } from '../keys/authentication.ts'
import type { Connection } from './connection/connection.ts'

export type RequestState = {
  readonly connection: Connection
  /** Low in number: the endpoint's name, or `other`. */
  readonly endpoint: ResponseName
  /** Served to anyone: no key, no quota. */
  readonly isOpen: boolean
  /** By `performance.now()`. */
  readonly startedAt: number
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
  /** The next local midnight, ms since the epoch. */
  readonly resetsAt: number
  /** Null until the key is known, and for good when it is refused. */
  client: Client | null
  /** Units left after this request; 0 until its own is granted. */
  remaining: number
  /** Whether key and quota are decided. */
  isDecided: boolean
  /** The cache result as in `cache-status`, for responses with weather. */
  cache: string | undefined
  /** The cell of a response with weather. */
  cell: string | undefined
  /** The bytes of the body, as it is sent. */
  bytes: number
  encoding: 'br' | 'gzip' | undefined
  /** Why the key was refused, or the code of the failure behind a 500. */
  reason: string | undefined
  /** The id of a key that was refused and is known. */
  refusedKeyId: string | undefined
  /** The id of the trace that the client or this process has begun. */
  traceId: string | undefined
  /** Undefined where requests are not traced. */
  trace: RequestTrace | undefined
}

/** The span of a request. */
export type RequestTrace = { readonly traceId: string; end(access: Access): void }

/** A request at its end, as metrics and the usage of its key count it. */
export type Answered = {
  readonly endpoint: ResponseName
  /** 499 when the consumer left before there was one. */
  readonly status: number
  readonly ms: number
  readonly keyId: string | undefined
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
}

/** A request at its end, as the access log and traces see it. */
export type Access = Answered & {
  readonly requestId: string
  readonly method: string
  /** The URL as it was received: it may hold secrets. */
  readonly url: string
  /** The cache result as in `cache-status`, for answers with weather. */
  readonly cache: string | undefined
  readonly tier: string | undefined
  readonly cell: string | undefined
  /** Of the body as it was sent; 0 for HEAD and 304. */
  readonly bytes: number
  readonly encoding: 'br' | 'gzip' | undefined
  /** Whether `if-none-match` was answered with 304; undefined when it did not come. */
  readonly notModified: boolean | undefined
  readonly reason: string | undefined
  readonly traceId: string | undefined
  /** The client's address, in the form of `log.clientAddress`. */
  readonly client: string | undefined
  /** The number of the connection, and of the request on it. */
  readonly connection: number
  readonly connectionRequest: number
  readonly httpVersion: string
}

export type AnswerObserver = {
  /** Times a response. */
  responded(endpoint: ResponseName, status: number, seconds: number): void
  /** Counts a response for the usage of its key. */
  used(answered: Answered): void
  /** Logs a response; undefined when responses are not logged. */
  access: ((access: Access) => void) | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    endpoint?: ResponseName
    isOpen?: boolean
  }
}
