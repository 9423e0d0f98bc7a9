// What stands between a request and its answer, in the order the contract gives: transport, key, quota, method. Leaves in
// the request's state who asks and what the rate-limit headers say, refused or not.

import type { IncomingMessage } from 'node:http'
import type { Authenticate, Authentication, KeyMemo, Refusal } from '../metering/authentication.ts'
import type { Deal } from '../metering/partition.ts'
import type { Quota } from '../metering/quota.ts'
import { Problem } from './problem.ts'
import type { RequestState } from './request-state.ts'
import { sentences } from './sentences.ts'
import type { TransportProblem } from './transport.ts'
import type { Charged } from './unparsable.ts'

export type AdmissionParts = {
  readonly authenticate: Authenticate
  readonly quota: Quota
  readonly transportProblem: TransportProblem
  readonly observer: AdmissionObserver
}

/** `allowed`, `exhausted`, the reason why a key was refused, or `unavailable` when the store could not tell. */
type AdmissionObserver = {
  admission(decision: 'allowed' | 'exhausted' | 'unavailable' | Refusal): void
}

export type Admission = {
  /** Finds out who asks and takes a unit. Throws or rejects with the Problem that refuses the request. */
  ask(request: IncomingMessage, state: RequestState): Promise<Deal>
  /** Notes what was taken. @throws Problem when that was nothing, or when the method is none of ours */
  settle(request: IncomingMessage, state: RequestState, deal: Deal): void
  /** Counts a request that cannot be answered otherwise, where it came with a good key. Never rejects. */
  charge(key: string | undefined, memo: KeyMemo, arrivedAt: number): Promise<Charged>
  /** To be told of whatever ended a request: a store that could not tell is a decision too. */
  failed(state: RequestState, error: unknown): void
}

export const createAdmission = ({
  authenticate,
  quota,
  transportProblem,
  observer,
}: AdmissionParts): Admission => {
  const takeAs = (state: RequestState, authentication: Authentication): Promise<Deal> => {
    if ('refusal' in authentication) {
      state.isDecided = true
      observer.admission(authentication.refusal)
      throw new Problem(401, sentences.key[authentication.refusal], challenge)
    }
    state.client = authentication.client
    return quota.consume(authentication.client, state.arrivedAt)
  }

  return {
    ask: (request, state) => {
      const wayProblem = transportProblem(request)
      if (wayProblem) throw wayProblem
      // A key that is known here is known at once. Sent twice, it is joined by a comma and malformed.
      const known = authenticate(request.headers['x-api-key'] as string | undefined, state.connection.keyMemo)
      return known instanceof Promise ? known.then(late => takeAs(state, late)) : takeAs(state, known)
    },
    settle: ({ method }, state, { allowed, remaining }) => {
      state.isDecided = true
      state.remaining = remaining
      observer.admission(allowed ? 'allowed' : 'exhausted')
      if (!allowed) throw new QuotaExhausted(state.client?.limit ?? 0, state.resetsAt, quota.now())
      if (method !== 'GET' && method !== 'HEAD')
        throw new Problem(405, sentences.http.method(method), { allow: 'GET, HEAD' })
    },
    charge: async (key, memo, arrivedAt) => {
      const nobody = { limit: 0, remaining: 0, keyId: undefined, problem: undefined }
      try {
        const authentication = await authenticate(key, memo)
        if ('refusal' in authentication) return nobody
        const { keyId, limit } = authentication.client
        const { allowed, remaining } = await quota.consume(authentication.client, arrivedAt)
        observer.admission(allowed ? 'allowed' : 'exhausted')
        const problem = allowed
          ? undefined
          : new QuotaExhausted(limit, quota.resetAfter(arrivedAt), quota.now())
        return { limit, remaining, keyId, problem }
      } catch {
        // What is wrong with the request does not depend on what the store can tell.
        observer.admission('unavailable')
        return nobody
      }
    },
    failed: ({ isDecided }, error) => {
      if (!isDecided && !(error instanceof Problem)) observer.admission('unavailable')
    },
  }
}

/** The 429 of the contract, with its own fields in the body. */
export class QuotaExhausted extends Problem {
  override name = 'QuotaExhausted'
  readonly fields: { readonly limit: number; readonly reset_at: string }

  constructor(limit: number, resetsAt: number, now: number) {
    super(429, sentences.quotaExhausted(limit), {
      'retry-after': String(Math.max(1, Math.ceil((resetsAt - now) / 1000))),
    })
    this.fields = { limit, reset_at: new Date(resetsAt).toISOString() }
  }
}

// RFC 9110 demands one with every 401.
const challenge = { 'www-authenticate': 'ApiKey realm="abohawa"' }
