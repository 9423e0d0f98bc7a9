// What is known of a request: while it runs, beside what Fastify knows, as `request.state`, which the hooks fill; and at its
// end, for log and metrics.

import type { Client } from '../metering/authentication.ts'
import type { Connection } from './connections.ts'

export type RequestState = {
  readonly connection: Connection
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
  /** What the cache did, as in `cache-status`, for responses with weather. */
  cache: string | undefined
}

/** A request at its end, as log and metrics see it. */
export type Access = {
  readonly requestId: string
  readonly method: string
  /** As it was received: it may hold what no log should tell. */
  readonly url: string
  /** Low in number: the endpoint's name, or `other`. */
  readonly endpoint: string
  /** 499 when the consumer left before there was one. */
  readonly status: number
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
  readonly ms: number
  readonly keyId: string | undefined
  /** What the cache did, in the words of `cache-status`, for answers with weather. */
  readonly cache: string | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    /** The endpoint's name in logs and metrics. */
    endpoint?: string
  }
}
