// A request and the response it is given, as the parts of the listener hand it on: who asks, what is left to them, what
// became of it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client } from '../metering/authentication.ts'
import type { Asked } from './asked.ts'
import type { Connection } from './connections.ts'

export type Exchange = {
  readonly request: IncomingMessage
  readonly asked: Asked
  readonly response: ServerResponse
  readonly connection: Connection
  /** The consumer's own id for the request, or ours. */
  readonly id: string
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
  /** The next local midnight, ms since the epoch. */
  readonly resetsAt: number
  /** Null until the key is known, and for good when it is refused. */
  client: Client | null
  /** Units left after this request; 0 until its own is taken. */
  remaining: number
  /** Whether it was found out what this request may do. */
  judged: boolean
  /** What the cache did, in the words of `cache-status`, for answers with weather. */
  cache: string | undefined
}

export const openExchange = (
  request: IncomingMessage,
  asked: Asked,
  response: ServerResponse,
  connection: Connection,
  id: string,
  arrivedAt: number,
  resetsAt: number,
): Exchange => ({
  request,
  asked,
  response,
  connection,
  id,
  arrivedAt,
  resetsAt,
  client: null,
  remaining: 0,
  judged: false,
  cache: undefined,
})
