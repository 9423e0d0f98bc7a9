// The state of a request while it runs (`request.state`), and at its end, for log and metrics.

import type { ResponseName } from '../common/endpoints.ts'
import type { Client } from '../keys/authentication.ts'
import type { Connection } from './connection/connection.ts'
import type { Representation } from './endpoint.ts'

export type RequestState = Access & {
  /** Served to anyone: no key, no quota. */
  readonly isOpen: boolean
  readonly startedAt: number
  /** The next local midnight, ms since the epoch. */
  readonly resetsAt: number
  readonly connection: Connection
  /** Null until the key is known, and for good when it is refused. */
  client: Client | null
  /** Reads what the request costs; undefined where that is one unit, as of nearly all. */
  readonly readCost: (() => number | undefined) | undefined
  /** The answer where it is known to be what the consumer has, and costs nothing then; undefined where that can't be. */
  readonly unchanged: (() => Representation | undefined) | undefined
  /** Units left after this request; 0 until its own is granted. */
  remaining: number
  isDecided: boolean
  /** The id of a key that was refused and is known. */
  refusedKeyId: string | undefined
  trace: RequestTrace | undefined
}

export type RequestTrace = { readonly traceId: string; end(access: Readonly<Access>): void }

/** A request at its end, as metrics and the usage of its key count it. */
export type Answered = {
  /** Low in number: the endpoint's name, or `other`. */
  endpoint: ResponseName
  /** 499 when the consumer left before there was one. */
  status: number
  ms: number
  keyId: string | undefined
  /** Stands for the id of an accepted key. */
  keyNumber: number | undefined
  isTest: boolean
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
}

/** A request at its end, as the access log and traces see it; one record from its arrival on, because each costs memory. */
export type Access = Answered & {
  readonly requestId: string
  readonly method: string
  /** The URL as it was received: it may hold secrets. */
  readonly url: string
  /** The cache result as in `cache-status`, for answers with weather. */
  cache: string | undefined
  tier: string | undefined
  cell: string | undefined
  /** The units that it takes where its parameters say how many, once its key is known; undefined for one. */
  cost: number | undefined
  /** Of the body as it was sent; 0 for HEAD and 304. */
  bytes: number
  encoding: 'br' | 'gzip' | undefined
  /** Whether `if-none-match` was answered with 304; undefined when it did not come. */
  notModified: boolean | undefined
  /** Why the key was refused, or the code of the failure behind a 500. */
  reason: string | undefined
  /** The id of the trace that the client or this process has begun. */
  traceId: string | undefined
  /** The client's address, in the form of `log.clientAddress`. */
  address: string | undefined
  readonly connection: Pick<Connection, 'number'>
  connectionRequest: number
  readonly httpVersion: string
}

export type AnswerObserver = {
  /** Times a response; of a test key it only counts it. */
  responded(endpoint: ResponseName, status: number, seconds: number): void
  respondedToTest(status: number): void
  used(answered: Readonly<Answered>): void
  /** Logs a response; undefined when responses are not logged. */
  access: ((access: Readonly<Access>) => void) | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    endpoint?: ResponseName
    isOpen?: boolean
    /** The units that a query takes; undefined for one unit. */
    costOf?: (query: string) => number | undefined
    /** The answer to a request with `if-none-match` where it is known to be unchanged. */
    unchanged?: (request: FastifyRequest) => Representation | undefined
  }
}
