// Admits or refuses a request, in the order of the contract: transport (HTTPS, here or at a trusted proxy, and valid HTTP),
// key, limits by the second and minute, what the key is bound to, quota, method. Stores the client and the rate-limit figures in
// the request's state, refused or not; counting is the quota's. refusals.ts has what is looked at more closely, and what a refusal says,
// rate-lines.ts the headers.

import type { IncomingMessage } from 'node:http'
import type { ResponseName } from '../common/endpoints.ts'
import type { Authenticate, Authentication, Client, KeyMemo, KeyRefusal } from '../keys/authentication.ts'
import type { Quota } from '../keys/meter.ts'
import { promised, type QuotaDecision } from '../keys/outage.ts'
import type { RatePolicy, RateRefusal, Rates } from '../keys/rates.ts'
import type { BoundKey, RestrictionRefusal } from '../keys/restrictions.ts'
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

/** The reason why a key was refused here or at all, or `unavailable` when the store failed. */
type Decision = 'allowed' | 'rate_limited' | 'exhausted' | 'unavailable' | KeyRefusal | RestrictionRefusal

/** Of all requests but those of test keys. */
type AdmissionObserver = {
  admission(decision: Decision): void
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

/** What is known of a request whose head may be invalid. */
type Head = Pick<IncomingMessage, 'socket' | 'headers'>

/** Counts connections until a good key came on them. */
type Counting = Pick<Connections, 'authenticated'>

export const createAdmission = (
  { authenticate, quota, rates, observer }: AdmissionParts,
  { isHttpsRequired, isPlain, transportProblem }: Transport,
  addressOf: (request: Head) => string | undefined,
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
    if (state.readCost) state.cost = state.readCost()
    if (client.rates !== undefined) takeToken(request, state, client, next)
    else if (client.bound !== undefined) holdAgainst(client.bound, request, state, client, next)
    else takeUnit(request, state, client, next)
  }
  // Apart from what all requests pass: a function with a closure in it costs each call memory.
  const takeToken = (request: IncomingMessage, state: RequestState, client: Client, next: Next): void =>
    rates.take(client, refusal =>
      goOn(() => {
        if (refusal) refuse(state, client, rateLimited, limited(refusal, client), next)
        else if (client.bound) holdAgainst(client.bound, request, state, client, next)
        else takeUnit(request, state, client, next)
      }),
    )
  /** A key that is open in a page must not lose its day to whoever else uses it, so a refusal takes no unit. */
  const holdAgainst = (
    bound: BoundKey,
    request: IncomingMessage,
    state: RequestState,
    client: Client,
    next: Next,
  ): void => {
    const problem = boundProblem(bound, request, state.endpoint)
    if (problem === undefined) {
      takeUnit(request, state, client, next)
      return
    }
    if (state.cost !== undefined) state.cost = 0
    observe(client, problem.refusal)
    refuse(state, client, problem.refusal, problem.problem, next)
  }
  /** Reads what remains of the day for a refusal, which takes no unit: 0 where the store is away and nothing is known of it. */
  const remainingOf = (client: Client, arrivedAt: number, then: (remaining: number) => void): void =>
    quota.take(client, arrivedAt, 0, (_, decision) => goOn(() => then(decision?.remaining ?? 0)))
  const refuse = (state: RequestState, client: Client, reason: string, problem: Problem, next: Next): void =>
    remainingOf(client, state.arrivedAt, remaining => {
      state.isDecided = true
      state.reason = reason
      state.remaining = remaining
      next(problem)
    })
  /** The same for an unparsable request. */
  const refused = (client: Client, arrivedAt: number, reason: string, problem: Problem): Promise<Charged> =>
    new Promise(resolve => {
      remainingOf(client, arrivedAt, remaining => resolve({ client, remaining, problem, reason }))
    })
  const limited = (refusal: RateRefusal, client: Client): Problem => {
    observe(client, rateLimited)
    if (!client.isTest) observer.rateLimited(refusal.policy)
    return rateProblem(refusal, quota.now())
  }
  /** Requests of test keys have a metric of their own. */
  const observe = ({ isTest }: Pick<Client, 'isTest'>, decision: Decision): void => {
    if (!isTest) observer.admission(decision)
  }
  const takeUnit = (request: IncomingMessage, state: RequestState, client: Client, next: Next): void => {
    // What is known to be as the consumer has it, and costs nothing then, is not refused for want of units.
    const isFree = state.unchanged?.() !== undefined
    if (isFree && state.cost !== undefined) state.cost = 0
    const units = isFree ? 0 : unitsOf(state)
    quota.take(client, state.arrivedAt, units, (error, decision) => {
      try {
        const problem = decision ? enforce(request, state, client, decision) : error
        const wanted = !problem && client.isTest && request.headers['x-test-error']
        if (wanted) testErrorOf(String(wanted), state, quota.now()).then(next, next)
        else next(problem)
      } catch (fault) {
        throwLater(fault)
      }
    })
  }
  /** Why a key is bound to others than this request, and what that says; undefined where it is not. */
  const boundProblem = (bound: BoundKey, request: Head, endpoint: ResponseName) => {
    const { origin } = request.headers
    const refusal = bound.refusal({ origin, endpoint }, () => addressOf(request))
    if (refusal === undefined) return undefined
    const given = { origin, endpoint, address: addressOf(request) }
    return { refusal, problem: restrictionProblem(refusal, bound.restrictions, given) }
  }
  /** The problem of an exhausted quota, or of a method other than GET and HEAD. */
  const enforce = (
    request: IncomingMessage,
    state: RequestState,
    client: Client,
    { allowed, remaining }: QuotaDecision,
  ): Problem | undefined => {
    const { method } = request
    state.isDecided = true
    state.remaining = remaining
    observe(client, allowed ? 'allowed' : 'exhausted')
    if (!allowed) {
      const { cost } = state
      const problem = quotaProblem(client.limit, state.resetsAt, quota.now(), cost, remaining)
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
    /** Consumes one unit for an unparsable request, if its key is valid and may be used there. Never rejects. */
    charge: async (head: Head, memo: KeyMemo, arrivedAt: number): Promise<Charged> => {
      let isTest = false
      try {
        const authentication = await authenticate(head.headers['x-api-key'] as string | undefined, memo)
        if ('refusal' in authentication) return nobody
        const { client } = authentication
        isTest = client.isTest
        const tooSoon = await new Promise<RateRefusal | undefined>(resolve => rates.take(client, resolve))
        if (tooSoon) return refused(client, arrivedAt, rateLimited, limited(tooSoon, client))
        const bound = client.bound && boundProblem(client.bound, head, 'other')
        if (bound) {
          observe(client, bound.refusal)
          return refused(client, arrivedAt, bound.refusal, bound.problem)
        }
        const { allowed, remaining } = await promised(waiter => quota.take(client, arrivedAt, 1, waiter))
        observe(client, allowed ? 'allowed' : 'exhausted')
        const problem = allowed
          ? undefined
          : quotaProblem(client.limit, quota.resetAfter(arrivedAt), quota.now())
        return { client, remaining, problem }
      } catch {
        // The request is invalid whether or not the store answers.
        observe({ isTest }, 'unavailable')
        return nobody
      }
    },
    /** Call with the error that ended a request: a store that failed is counted as a decision too. */
    failed: (state: RequestState, error: unknown): void => {
      if (!state.isDecided && !(error instanceof Problem)) observe(state, 'unavailable')
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
