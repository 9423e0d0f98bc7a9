// Sends the requests of a rehearsal to its gateway over connections that stay open, and reads from the head of each response
// what the cache did and how old the weather was. What that means for the run is recorded by the caller.

import { type Dispatcher, Pool } from 'undici'
import { ageOf, cacheOutcomeOf } from '../replay/response-head.ts'
import type { Outcome, TrafficRequest } from '../traffic/traffic-request.ts'

export type Answer = {
  readonly status: number
  readonly outcome: Outcome
  /** Of the body as it was received. */
  readonly bytes: number
  readonly ageSeconds: number | undefined
  /** Whether a load goes on behind the answer. */
  readonly forwarded: boolean
}

export type Sender = {
  /** @param key the key itself. @throws Error when there is no answer */
  send(request: TrafficRequest, key: string | undefined): Promise<Answer>
  close(): Promise<void>
}

export const maxConnections = 256
// By the machine's clock; longer than the gateway's own deadlines for what it waits for.
const timeoutMs = 60_000

export const createSender = (url: string): Sender => {
  const pool = new Pool(url, {
    connections: maxConnections,
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveTimeout: 600_000,
    allowH2: false,
  })
  // The tag for conditional requests: that of the last answer with the same path and encoding.
  const tags = new Map<string, string>()

  return {
    send: async (request, key) => {
      const { method, path, accepts, conditional } = request
      const headers: Record<string, string> = {}
      if (key !== undefined) headers['x-api-key'] = key
      if (accepts !== undefined) headers['accept-encoding'] = accepts
      const representation = `${accepts ?? ''} ${path}`
      const tag = conditional ? tags.get(representation) : undefined
      if (tag !== undefined) headers['if-none-match'] = tag
      const answer = await pool.request({ method: method as Dispatcher.HttpMethod, path, headers })
      const { statusCode: status, headers: head, body } = answer
      if (typeof head.etag === 'string') tags.set(representation, head.etag)
      let bytes = 0
      for await (const chunk of body) bytes += (chunk as Buffer).length
      return { status, bytes, ...cacheIn(head) }
    },
    close: () => pool.destroy(),
  }
}

type Head = Readonly<Record<string, string | string[] | undefined>>

const cacheIn = (head: Head): Pick<Answer, 'outcome' | 'ageSeconds' | 'forwarded'> => {
  const status = textOf(head['cache-status']) ?? ''
  return {
    outcome: cacheOutcomeOf(status),
    ageSeconds: ageOf(textOf(head.date), textOf(head['last-modified'])),
    forwarded: status.includes('; fwd='),
  }
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value
