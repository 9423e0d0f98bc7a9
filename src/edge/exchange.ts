// A request and the response it is given, as the parts of the listener hand it on: who asks, what is left to them, what
// became of it. Knows neither keys nor weather.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client } from '../metering/authentication.ts'
import { rateLimitHeaders } from './response-headers.ts'

export type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The consumer's own id for the request, or ours. */
  readonly id: string
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
  /** The next local midnight, ms since the epoch. */
  readonly resetsAt: number
  /** Null until the key is known, and for good when it is refused. */
  client: Client | null
  /** The header lines of the quota: nothing is promised until the key and its count are known. */
  allowance: string
  /** What the cache did, in the words of `cache-status`, for answers with weather. */
  cache: string | undefined
}

export const openExchange = (
  request: IncomingMessage,
  response: ServerResponse,
  { id, arrivedAt, resetsAt }: Pick<Exchange, 'id' | 'arrivedAt' | 'resetsAt'>,
): Exchange => ({
  request,
  response,
  id,
  arrivedAt,
  resetsAt,
  client: null,
  allowance: rateLimitHeaders({ limit: 0, remaining: 0, resetsAt }),
  cache: undefined,
})
