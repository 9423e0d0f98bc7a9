// What stands between a request and its answer, in the order the contract gives: transport, key, quota, method. Notes on
// the exchange who asks and what the rate-limit headers are to say, refused or not.

import type { Authenticate, Authentication, Refusal } from '../metering/authentication.ts'
import { keyPrefix } from '../metering/key-form.ts'
import type { Quota } from '../metering/quota.ts'
import type { Exchange } from './exchange.ts'
import { Problem } from './problem.ts'
import { rateLimitHeaders } from './response-headers.ts'
import type { TransportProblem } from './transport.ts'

export type AdmissionParts = {
  readonly authenticate: Authenticate
  readonly quota: Quota
  readonly transportProblem: TransportProblem
  readonly observer: AdmissionObserver
}

/** `allowed`, `exhausted`, the reason why a key was refused, or `unavailable` when the store could not tell. */
export type AdmissionObserver = {
  admission(decision: 'allowed' | 'exhausted' | 'unavailable' | Refusal): void
}

/** Lets a request pass, or rejects with the Problem that refuses it. */
export type Admit = (exchange: Exchange) => Promise<void>

export const createAdmit = ({ authenticate, quota, transportProblem, observer }: AdmissionParts): Admit => {
  const unavailable = (error: unknown): never => {
    observer.admission('unavailable')
    throw error
  }
  const clientOf = (authentication: Authentication) => {
    if ('client' in authentication) return authentication.client
    observer.admission(authentication.refusal)
    throw new Problem(401, refusals[authentication.refusal])
  }

  return async exchange => {
    const { request, arrivedAt, resetsAt } = exchange
    const wayProblem = transportProblem(request)
    if (wayProblem) throw wayProblem

    const known = authenticate(keyOf(request.headers['x-api-key']))
    // A key that is known here is known at once.
    const client = clientOf(known instanceof Promise ? await known.catch(unavailable) : known)
    exchange.client = client

    const { limit } = client
    const allowance = await quota.consume(client, arrivedAt).catch((error: unknown) => {
      exchange.allowance = rateLimitHeaders({ limit, remaining: 0, resetsAt })
      return unavailable(error)
    })
    exchange.allowance = rateLimitHeaders(allowance)
    if (!allowance.allowed) {
      observer.admission('exhausted')
      throw new QuotaExhausted(limit, allowance.resetsAt, quota.now())
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

const keyOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value?.trim()
