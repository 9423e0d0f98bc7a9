// What is known of a request beside what Fastify knows: filled by the hooks, read by whoever answers, logs or counts.
// Every request has it as `request.state`.

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

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    /** The endpoint's name in logs and metrics. */
    endpoint?: string
  }
}
