// Admits or refuses a request in the order of the contract: HTTPS and valid HTTP, key, limits by the second and minute, restrictions of
// the key, quota, method. Whatever the outcome, the client and the figures of its limits are in the request's state.

import type { IncomingMessage } from 'node:http'
import type { Authenticate, Authentication, Client, KeyRefusal } from '../keys/authentication.ts'
import type { QuotaDecision } from '../keys/count.ts'
import type { Quota } from '../keys/meter.ts'
import type { RatePolicy, RateRefusal } from '../keys/rates.ts'
import type { KeyRestrictions, RestrictionRefusal } from '../keys/restrictions.ts'
import { StoreError } from '../stores/store.ts'
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
  readonly observer: AdmissionObserver
}

/** The reason why a key was refused here or at all, or `unavailable` when the store failed. */
type Decision = 'allowed' | 'rate_limited' | 'exhausted' | 'unavailable' | KeyRefusal | RestrictionRefusal

type AdmissionObserver = {
  admission(decision: Decision): void
  /** By which limit beside that of the day. */
  rateLimited(policy: RatePolicy): void
}

export type Admission = ReturnType<typeof createAdmission>

/** Goes on with a request, or refuses it with the error. */
type Next = (error?: unknown) => void

/** Counts connections until a good key came on them. */
type Counting = Pick<Connections, 'authenticated'>

type AddressOf = (request: IncomingMessage) => string | undefined

export const createAdmission = (parts: AdmissionParts, transport: Transport, addressOf: AddressOf) => {
  const { authenticate, observer } = parts
  const checkTransport = createTransportCheck(transport)
  const { consumeUnits, checkRestrictions } = createCharge(parts, addressOf)
  const admit = (
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
    state.keyNumber = client.keyNumber
    state.tier = client.tier
    state.isTest = client.isTest
    if (state.readCost) state.cost = state.readCost()
    if (client.restrictedBy === undefined) consumeUnits(request, state, client, next)
    else checkRestrictions(client.restrictedBy, request, state, client, next)
  }

  return {
    /**
     * Authenticates and takes the units of the request, then calls `next` with the error that refuses it, if any: synchronously, or when
     * the store has counted. @throws Problem of the transport
     */
    decide: (request: IncomingMessage, state: RequestState, connections: Counting, next: Next): void => {
      checkTransport(request)
      // A cached key needs no store. A header sent twice is joined by a comma, and so malformed.
      const known = authenticate(request.headers['x-api-key'] as string | undefined, state.connection.keyMemo)
      if (known instanceof Promise) {
        known.then(late => admit(request, state, late, connections, next)).catch(next)
      } else admit(request, state, known, connections, next)
    },
    /** Counts a request that a failed store ended. */
    failed: (state: RequestState, error: unknown): void => {
      if (!state.isDecided && !state.isTest && !(error instanceof Problem)) observer.admission('unavailable')
    },
  }
}

/** @throws Problem of plain HTTP where HTTPS is required, and of invalid HTTP */
const createTransportCheck = ({ isHttpsRequired, isPlain, transportProblem }: Transport) => {
  // Nearly all requests name the same host. An empty one is none.
  let goodHost: string | null = null
  return (request: IncomingMessage): void => {
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
}

/** Charges a key: its limits by the second and minute, what it is bound to, then the units of the request. */
const createCharge = ({ quota, observer }: AdmissionParts, addressOf: AddressOf) => {
  /** A key that is open in a page must not lose its day to whoever else uses it, so a refusal takes no unit. */
  const checkRestrictions = (
    restrictedBy: KeyRestrictions,
    request: IncomingMessage,
    state: RequestState,
    client: Client,
    next: Next,
  ): void => {
    const { endpoint } = state
    const { origin } = request.headers
    const refusal = restrictedBy.refusal({ origin, endpoint }, () => addressOf(request))
    if (refusal === undefined) {
      consumeUnits(request, state, client, next)
      return
    }
    // Where the store is unavailable and the day unknown, nothing is said of what remains.
    quota.consume(client, state.arrivedAt, 0, (error, { tooSoon, remaining } = unknown) =>
      resume(() => {
        state.isDecided = !error
        state.remaining = remaining
        if (tooSoon) {
          next(tooFast(state, client, tooSoon))
          return
        }
        if (state.cost !== undefined) state.cost = 0
        state.reason = refusal
        observe(client, refusal)
        const given = { origin, endpoint, address: addressOf(request) }
        next(restrictionProblem(refusal, restrictedBy.restrictions, given))
      }),
    )
  }
  const tooFast = (state: RequestState, client: Client, refusal: RateRefusal): Problem => {
    state.reason = 'rate_limited'
    observe(client, 'rate_limited')
    if (!client.isTest) observer.rateLimited(refusal.policy)
    return rateProblem(refusal, quota.now())
  }
  /** Requests of test keys have a metric of their own. */
  const observe = ({ isTest }: Client, decision: Decision): void => {
    if (!isTest) observer.admission(decision)
  }
  const consumeUnits = (request: IncomingMessage, state: RequestState, client: Client, next: Next): void => {
    // A free 304 is not refused for lack of units.
    const isFree = state.unchanged?.() !== undefined
    if (isFree && state.cost !== undefined) state.cost = 0
    const units = isFree ? 0 : unitsOf(state)
    quota.consume(client, state.arrivedAt, units, (error, decision) => {
      try {
        // The key's own endpoint has an answer without the count.
        const isNeeded = state.endpoint !== 'key' || !(error instanceof StoreError)
        const unknown = isNeeded ? error : undefined
        const problem = decision ? problemOf(request, state, client, decision) : unknown
        const wanted = !problem && client.isTest && request.headers['x-test-error']
        if (wanted) testErrorOf(String(wanted), state, quota.now()).then(next, next)
        else next(problem)
      } catch (fault) {
        throwLater(fault)
      }
    })
  }

  /** The problem of a request that comes too soon, of an exhausted quota, or of a method other than GET and HEAD. */
  const problemOf = (
    request: IncomingMessage,
    state: RequestState,
    client: Client,
    { allowed, remaining, tooSoon }: QuotaDecision,
  ): Problem | undefined => {
    const { method } = request
    state.isDecided = true
    state.remaining = remaining
    if (tooSoon) return tooFast(state, client, tooSoon)
    observe(client, allowed ? 'allowed' : 'exhausted')
    if (!allowed) {
      const problem = quotaProblem(client.limit, state.resetsAt, quota.now(), state.cost, remaining)
      // The log must not say that the day is used up.
      if (problem.code === insufficient) state.reason = insufficient
      return problem
    }
    return method !== 'GET' && method !== 'HEAD' ? methodProblem(request) : undefined
  }

  return { consumeUnits, checkRestrictions }
}

const unknown: QuotaDecision = { allowed: false, remaining: 0 }

/** The units that a request takes. A key that asks about itself only reads its count. */
export const unitsOf = ({ endpoint, cost = 1 }: Pick<RequestState, 'endpoint' | 'cost'>): number =>
  endpoint === 'key' ? 0 : cost

const insufficient = 'quota_insufficient'

/** A fault of the program, which must not keep the other requests of a batch from their answers. */
const throwLater = (fault: unknown): void =>
  queueMicrotask(() => {
    throw fault
  })
const resume = (step: () => void): void => {
  try {
    step()
  } catch (fault) {
    throwLater(fault)
  }
}
