// What stands between a request and its answer, in the order the contract gives: transport, key, quota, method. Sets
// the rate-limit headers of every response, refused or not.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticate, Client, Refusal } from '../metering/authentication.ts'
import { keyPrefix } from '../metering/key-form.ts'
import type { Quota } from '../metering/quota.ts'
import { Problem } from './problem.ts'
import { rateLimitHeaders } from './response-headers.ts'
import { transportProblem } from './transport.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks; null until the key is known, and for good when it is refused. */
    client: Client | null
  }
}

export type AdmissionParts = {
  readonly authenticate: Authenticate
  readonly quota: Quota
  readonly behindProxies: boolean
  readonly observer: AdmissionObserver
}

/** `allowed`, `exhausted`, the reason why a key was refused, or `unavailable` when the store could not tell. */
export type AdmissionObserver = {
  admission(decision: 'allowed' | 'exhausted' | 'unavailable' | Refusal): void
}

/** Lets a request pass, or throws the Problem that refuses it. */
export type Admit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export const createAdmit = (parts: AdmissionParts): Admit => {
  const { authenticate, quota, behindProxies, observer } = parts
  const told = <Answer>(answer: Promise<Answer>): Promise<Answer> =>
    answer.catch(error => {
      observer.admission('unavailable')
      throw error
    })

  return async (request, reply) => {
    const arrivedAt = quota.now()
    const resetsAt = quota.resetAfter(arrivedAt)
    // Nothing is promised until the key and its count are known.
    reply.headers(rateLimitHeaders({ limit: 0, remaining: 0, resetsAt }))

    const wayProblem = transportProblem(request, behindProxies)
    if (wayProblem) throw wayProblem

    const authentication = await told(authenticate(headerOf(request, 'x-api-key')))
    if ('refusal' in authentication) {
      observer.admission(authentication.refusal)
      throw new Problem(401, refusals[authentication.refusal])
    }
    const { client } = authentication
    request.client = client
    reply.headers(rateLimitHeaders({ limit: client.limit, remaining: 0, resetsAt }))

    const allowance = await told(quota.consume(client, arrivedAt))
    reply.headers(rateLimitHeaders(allowance))
    if (!allowance.allowed) {
      observer.admission('exhausted')
      throw new QuotaExhausted(allowance.limit, allowance.resetsAt, quota.now())
    }
    observer.admission('allowed')

    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new Problem(405, `the method is ${request.method}; allowed: GET, HEAD`, { allow: 'GET, HEAD' })
  }
}

/** The 429 of the contract, with its own fields in the body. */
export class QuotaExhausted extends Problem {
  override name = 'QuotaExhausted'
  readonly fields: { readonly limit: number; readonly reset_at: string }

  constructor(limit: number, resetsAt: number, now: number) {
    super(429, `the daily quota of ${limit} requests of this key is exhausted`, {
      'retry-after': String(Math.max(1, Math.ceil((resetsAt - now) / 1000))),
    })
    this.fields = { limit, reset_at: new Date(resetsAt).toISOString() }
  }
}

const refusals: Readonly<Record<Refusal, string>> = {
  missing: 'the API key is missing: send it in the header x-api-key',
  'wrong-prefix': `the API key is invalid: a key begins with ${keyPrefix}`,
  malformed: 'the API key is invalid: it is mistyped or cut off',
  unknown: 'the API key is invalid: it is not known',
  replaced: 'the API key is invalid: it was replaced by a newer one',
  'key-revoked': 'the API key is invalid: it was revoked',
  'subscriber-revoked': 'the API key is invalid: its subscriber was revoked',
}

const headerOf = (request: FastifyRequest, name: string): string | undefined => {
  const value = request.headers[name]
  return Array.isArray(value) ? value.join(', ') : value?.trim()
}
