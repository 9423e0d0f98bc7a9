// Admits or refuses a request, in the order of the contract: transport (HTTPS, here or at a trusted proxy, and valid HTTP),
// key, limits by the second and minute, quota, what the key is bound to, method. Stores the client and the rate-limit figures in
// the request's state, refused or not; counting is the quota's. refusals.ts has what is looked at more closely, and what a refusal says,
// rate-lines.ts the headers.

import type { IncomingMessage } from 'node:http'
import type { Authenticate, Authentication, Client, KeyMemo, KeyRefusal } from '../keys/authentication.ts'
import { type Quota, unitsLeft } from '../keys/meter.ts'
import { promised, type QuotaDecision } from '../keys/outage.ts'
import type { RatePolicy, RateRefusal, Rates } from '../keys/rates.ts'
import type { RestrictionRefusal } from '../keys/restrictions.ts'
import { isHttp2 } from './connection/connection.ts'
import type { Connections } from './connection/connections.ts'
import { Problem } from './problem.ts'
import {
  keyProblem,
  methodProblem,
  quotaProblem,
  rateProblem,
  restrictionProblem,
  type Transport,
} from './refusals.ts'
import type { RequestState } from './request-state.ts'
import { testErrorOf } from './test-errors.ts'

export type AdmissionParts = {
  readonly authenticate: Authenticate
  readonly quota: Quota
  readonly rates: Pick<Rates, 'take'>
  readonly observer: AdmissionObserver
}

/** `allowed`, `rate_limited`, `exhausted`, the reason why a key was refused here or at all, or `unavailable` when the store failed. */
type AdmissionObserver = {
  admission(
    decision: 'allowed' | 'rate_limited' | 'exhausted' | 'unavailable' | KeyRefusal | RestrictionRefusal,
  ): void
  /** By which limit beside that of the day. */
  rateLimited(policy: RatePolicy): void
}

/** The result of charging a key: the figures of its quota, and the problem that takes precedence over the request's own. */
type Charged = {
  readonly client: Client | null
  readonly remaining: number
  readonly problem?: Problem | undefined
  /** For the access log. */
  readonly reason?: string | undefined
}

export type Admission = ReturnType<typeof createAdmission>

/** Goes on with a request, or refuses it with the error. */
type Next = (error?: unknown) => void

/** Counts connections until a good key came on them. */
type Counting = Pick<Connections, 'authenticated'>

export const createAdmission = (
  { authenticate, quota, rates, observer }: AdmissionParts,
  { isHttpsRequired, isPlain, transportProblem }: Transport,
  addressOf: (request: IncomingMessage) => string | undefined,
) => {
  // Nearly all requests name the same host. An empty one is none.
  let goodHost: string | null = null
  const checkTransport = (request: IncomingMessage): void => {
    const { headers } = request
    const isUsual =
      headers.host === goodHost &&
      headers['transfer-encoding'] === undefined &&
      (request.httpVersion === '1.1' || isHttp2(request))
    if (isUsual && !(isHttpsRequired && isPlain(request))) return
    const problem = transportProblem(request)
    if (problem) throw problem
    if (headers.host) goodHost = headers.host
  }
  const takeFor = (
    request: IncomingMessage,
    state: RequestState,
    authentication: Authentication,
    connections: Counting,
    next: Next,
  ): void => {
    if ('refusal' in authentication) {
      const { refusal, keyId } = authentication
      state.isDecided = true
      state.reason = refusal
      state.refusedKeyId = keyId
      observer.admission(refusal)
      next(keyProblem(refusal, request))
      return
    }
    const { client } = authentication
    if (!state.connection.isAuthenticated) connections.authenticated(state.connection)
    state.client = client
    state.keyId = client.keyId
    state.tier = client.tier
    state.isTest = client.isTest
    // What the key may not ask for costs one unit, however long its list.
    if (state.readCost && refusalOf(request, state) === undefined) state.cost = state.readCost()
    if (client.rates === undefined) takeUnit(request, state, client, next)
    else takeToken(request, state, client, next)
  }
  // Apart from what all requests pass: a function with a closure in it costs each call memory.
  const takeToken = (request: IncomingMessage, state: RequestState, client: Client, next: Next): void =>
    rates.take(client, refusal =>
      goOn(() => {
        if (refusal) limit(state, client, refusal, next)
        else takeUnit(request, state, client, next)
      }),
    )
  const limit = (state: RequestState, client: Client, refusal: RateRefusal, next: Next): void => {
    withUnitsLeft(client, state.arrivedAt, remaining => {
      state.isDecided = true
      state.reason = rateLimited
      state.remaining = remaining
      next(limited(refusal))
    })
  }
  const limited = (refusal: RateRefusal): Problem => {
    observer.admission(rateLimited)
    observer.rateLimited(refusal.policy)
    return rateProblem(refusal, quota.now())
  }
  /** Without asking the store, unless this instance knows nothing of the key's day yet. */
  const withUnitsLeft = (client: Client, arrivedAt: number, then: (remaining: number) => void): void => {
    if (client.count) then(unitsLeft(client, arrivedAt))
    else quota.take(client, arrivedAt, 0, (_, decision) => goOn(() => then(decision?.remaining ?? 0)))
  }
  const takeUnit = (request: IncomingMessage, state: RequestState, client: Client, next: Next): void => {
    quota.take(client, state.arrivedAt, unitsOf(state), (error, decision) => {
      try {
        const problem = decision ? enforce(request, state, decision) : error
        const wanted = !problem && client.isTest && request.headers['x-test-error']
        if (wanted) testErrorOf(String(wanted), state, quota.now()).then(next, next)
        else next(problem)
      } catch (fault) {
        throwLater(fault)
      }
    })
  }
  /** Why the key is bound to others than this request; undefined where it is not. */
  const refusalOf = (request: IncomingMessage, state: RequestState) =>
    state.client?.bound?.refusal(givenIn(request, state), () => addressOf(request))
  const givenIn = ({ headers }: IncomingMessage, { endpoint }: RequestState) => ({
    origin: headers.origin,
    endpoint,
  })
  /** The problem of an exhausted quota, of what the key is bound to, or of a method other than GET and HEAD. */
  const enforce = (
    request: IncomingMessage,
    state: RequestState,
    { allowed, remaining }: QuotaDecision,
  ): Problem | undefined => {
    const { method } = request
    state.isDecided = true
    state.remaining = remaining
    const bound = state.client?.bound
    if (allowed && bound !== undefined) {
      const refusal = refusalOf(request, state)
      if (refusal !== undefined) {
        state.reason = refusal
        observer.admission(refusal)
        const given = { ...givenIn(request, state), address: addressOf(request) }
        return restrictionProblem(refusal, bound.restrictions, given)
      }
    }
    observer.admission(allowed ? 'allowed' : 'exhausted')
    if (!allowed) {
      const { cost } = state
      const problem = quotaProblem(state.client?.limit ?? 0, state.resetsAt, quota.now(), cost, remaining)
      // The day is not used up: who reads the log must not think so.
      if (problem.code === insufficient) state.reason = insufficient
      return problem
    }
    return method !== 'GET' && method !== 'HEAD' ? methodProblem(request) : undefined
  }

  return {
    /**
     * Authenticates and takes the units of the request, then calls `next`, with the error that refuses the request if any: at once, or
     * in the turn in which the store has counted. @throws Problem of the transport
     */
    decide: (request: IncomingMessage, state: RequestState, connections: Counting, next: Next): void => {
      checkTransport(request)
      // A cached key needs no store. A header sent twice is joined by a comma, and so malformed.
      const known = authenticate(request.headers['x-api-key'] as string | undefined, state.connection.keyMemo)
      if (known instanceof Promise) {
        known.then(late => takeFor(request, state, late, connections, next)).catch(next)
      } else takeFor(request, state, known, connections, next)
    },
    /** Consumes one unit for an unparsable request, if its key is valid. Never rejects. */
    charge: async (key: string | undefined, memo: KeyMemo, arrivedAt: number): Promise<Charged> => {
      try {
        const authentication = await authenticate(key, memo)
        if ('refusal' in authentication) return nobody
        const { client } = authentication
        const refusal = await new Promise<RateRefusal | undefined>(resolve => rates.take(client, resolve))
        if (refusal) {
          const remaining = await new Promise<number>(resolve => withUnitsLeft(client, arrivedAt, resolve))
          return { client, remaining, problem: limited(refusal), reason: rateLimited }
        }
        const { allowed, remaining } = await promised(waiter => quota.take(client, arrivedAt, 1, waiter))
        observer.admission(allowed ? 'allowed' : 'exhausted')
        const problem = allowed
          ? undefined
          : quotaProblem(client.limit, quota.resetAfter(arrivedAt), quota.now())
        return { client, remaining, problem }
      } catch {
        // The request is invalid whether or not the store answers.
        observer.admission('unavailable')
        return nobody
      }
    },
    /** Call with the error that ended a request: a store that failed is counted as a decision too. */
    failed: ({ isDecided }: RequestState, error: unknown): void => {
      if (!isDecided && !(error instanceof Problem)) observer.admission('unavailable')
    },
  }
}

/** The units that a request takes. A key that asks about itself only reads its count. */
export const unitsOf = ({ endpoint, cost = 1 }: Pick<RequestState, 'endpoint' | 'cost'>): number =>
  endpoint === 'key' ? 0 : cost

const rateLimited = 'rate_limited'
const insufficient = 'quota_insufficient'

/** A fault of the program, which must not keep the other requests of a batch from their answers. */
const throwLater = (fault: unknown): void =>
  queueMicrotask(() => {
    throw fault
  })
const goOn = (step: () => void): void => {
  try {
    step()
  } catch (fault) {
    throwLater(fault)
  }
}

const nobody: Charged = { client: null, remaining: 0 }
