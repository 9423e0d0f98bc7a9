// Admits or refuses a request, in the order of the contract: transport (HTTPS, here or at a trusted proxy, and valid HTTP),
// key, quota, method. Stores the client and the rate-limit figures in the request's state, refused or not; counting is the
// quota's. The start-up rule for plain HTTP is in the config.

import type { IncomingMessage } from 'node:http'
import { isoOf } from '../common/calendar.ts'
import type { Authenticate, Authentication, KeyMemo, KeyRefusal } from '../keys/authentication.ts'
import { keyPrefix } from '../keys/key-form.ts'
import type { Quota } from '../keys/meter.ts'
import type { QuotaDecision } from '../keys/outage.ts'
import type { IsTrusted } from './connection/client-address.ts'
import { isHttp2, methodOf } from './connection/http2.ts'
import { badHttp, badRequest, Problem } from './problem.ts'
import type { RequestState } from './request-state.ts'
import { sentences } from './sentences.ts'

export type AdmissionParts = {
  readonly authenticate: Authenticate
  readonly quota: Quota
  readonly transportProblem: TransportProblem
  readonly observer: AdmissionObserver
}

/** `allowed`, `exhausted`, the reason why a key was refused, or `unavailable` when the store failed. */
type AdmissionObserver = {
  admission(decision: 'allowed' | 'exhausted' | 'unavailable' | KeyRefusal): void
}

/** The result of charging a key: the figures of its quota, and the problem that takes precedence over the request's own. */
export type Charged = {
  readonly limit: number
  readonly remaining: number
  readonly keyId: string | undefined
  readonly tier: string | undefined
  readonly problem: Problem | undefined
}

export type Admission = {
  /** Authenticates and consumes one unit. Throws or rejects with the Problem that refuses the request. */
  decide(request: IncomingMessage, state: RequestState): Promise<QuotaDecision>
  /** Applies the decision. @throws Problem for an exhausted quota and for a method other than GET and HEAD */
  enforce(request: IncomingMessage, state: RequestState, decision: QuotaDecision): void
  /** Consumes one unit for an unparsable request, if its key is valid. Never rejects. */
  charge(key: string | undefined, memo: KeyMemo, arrivedAt: number): Promise<Charged>
  /** Call with the error that ended a request: a store that failed is counted as a decision too. */
  failed(state: RequestState, error: unknown): void
}

export const createAdmission = ({
  authenticate,
  quota,
  transportProblem,
  observer,
}: AdmissionParts): Admission => {
  const consumeFor = (
    request: IncomingMessage,
    state: RequestState,
    authentication: Authentication,
  ): Promise<QuotaDecision> => {
    if ('refusal' in authentication) {
      const { refusal } = authentication
      state.isDecided = true
      state.reason = refusal
      state.refusedKeyId = authentication.keyId
      observer.admission(refusal)
      const sentence =
        refusal === 'missing' ? sentences.key.missing(elsewhereIn(request)) : sentences.key[refusal]
      throw new Problem(401, sentence, challenge)
    }
    state.client = authentication.client
    return quota.consume(authentication.client, state.arrivedAt)
  }

  return {
    decide: (request, state) => {
      const wayProblem = transportProblem(request)
      if (wayProblem) throw wayProblem
      // A cached key needs no store. A header sent twice is joined by a comma, and so malformed.
      const known = authenticate(request.headers['x-api-key'] as string | undefined, state.connection.keyMemo)
      return known instanceof Promise
        ? known.then(late => consumeFor(request, state, late))
        : consumeFor(request, state, known)
    },
    enforce: (request, state, { allowed, remaining }) => {
      const method = methodOf(request)
      state.isDecided = true
      state.remaining = remaining
      observer.admission(allowed ? 'allowed' : 'exhausted')
      if (!allowed) throw new QuotaExhausted(state.client?.limit ?? 0, state.resetsAt, quota.now())
      if (method !== 'GET' && method !== 'HEAD')
        throw new Problem(405, sentences.http.method(method), { allow: 'GET, HEAD' })
    },
    charge: async (key, memo, arrivedAt) => {
      const nobody = { limit: 0, remaining: 0, keyId: undefined, tier: undefined, problem: undefined }
      try {
        const authentication = await authenticate(key, memo)
        if ('refusal' in authentication) return nobody
        const { keyId, tier, limit } = authentication.client
        const { allowed, remaining } = await quota.consume(authentication.client, arrivedAt)
        observer.admission(allowed ? 'allowed' : 'exhausted')
        const problem = allowed
          ? undefined
          : new QuotaExhausted(limit, quota.resetAfter(arrivedAt), quota.now())
        return { limit, remaining, keyId, tier, problem }
      } catch {
        // The request is invalid whether or not the store answers.
        observer.admission('unavailable')
        return nobody
      }
    },
    failed: ({ isDecided }, error) => {
      if (!isDecided && !(error instanceof Problem)) observer.admission('unavailable')
    },
  }
}

/** Where a key may be that did not come in its header. */
const elsewhereIn = ({ headers, url = '' }: IncomingMessage): string | undefined => {
  if (headers.authorization !== undefined) return 'the header authorization'
  return url.includes(keyPrefix) ? 'the URL' : undefined
}

/** The figures of a quota after a request; instants in ms since the epoch. */
type RateLimit = {
  readonly limit: number
  readonly remaining: number
  readonly resetsAt: number
  readonly arrivedAt: number
  /** Whether `remaining` is what is left, and not the zero before. */
  readonly isDecided: boolean
}

/** The figures of a request; zeros before its key is known. */
export const rateLimitOf = ({
  client,
  remaining,
  resetsAt,
  arrivedAt,
  isDecided,
}: RequestState): RateLimit => ({
  limit: client?.limit ?? 0,
  remaining,
  resetsAt,
  arrivedAt,
  isDecided: isDecided && client !== null,
})

/** The header lines of every response. The contract's reset is a Unix timestamp in seconds. */
export const rateLimitLines = (given: RateLimit): string => {
  const { limit, remaining, resetsAt, isDecided } = given
  const contract = `x-ratelimit-limit: ${limit}\r\nx-ratelimit-reset: ${Math.floor(resetsAt / 1000)}\r\n`
  return isDecided
    ? `${contract}ratelimit-policy: ${policyOf(given)}\r\nx-ratelimit-remaining: ${remaining}\r\nratelimit: ${leftOf(given)}\r\n`
    : `${contract}x-ratelimit-remaining: ${remaining}\r\n`
}

/** The same by name. */
export const rateLimitFields = (given: RateLimit) => {
  const { limit, remaining, resetsAt, isDecided } = given
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.floor(resetsAt / 1000)),
    ...(isDecided ? { 'ratelimit-policy': policyOf(given), ratelimit: leftOf(given) } : {}),
  }
}

// draft-ietf-httpapi-ratelimit-headers-11. Before the quota is known they are left out: a client would take r=0 for
// a reason to wait for midnight.
const policyOf = ({ limit }: RateLimit): string => `"daily";q=${limit};w=86400`
const leftOf = ({ remaining, resetsAt, arrivedAt }: RateLimit): string =>
  `"daily";r=${remaining};t=${Math.ceil((resetsAt - arrivedAt) / 1000)}`

/** The 429 of the contract, with its own fields in the body. */
class QuotaExhausted extends Problem {
  override name = 'QuotaExhausted'
  override readonly fields: { readonly limit: number; readonly reset_at: string }

  constructor(limit: number, resetsAt: number, now: number) {
    super(429, sentences.quotaExhausted(limit), {
      'retry-after': String(Math.max(1, Math.ceil((resetsAt - now) / 1000))),
    })
    this.fields = { limit, reset_at: isoOf(resetsAt) }
  }
}

// RFC 9110 demands one with every 401.
const challenge = { 'www-authenticate': 'ApiKey realm="abohawa"' }

export type TransportProblem = (request: IncomingMessage) => Problem | undefined

/** Whether a request came over plain HTTP where HTTPS is required. */
export type IsPlain = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => boolean

/** @param isTrusted who may end TLS for us; undefined where nobody may, and HTTPS is not required */
export const createIsPlain = (isTrusted: IsTrusted | undefined): IsPlain => {
  // x-forwarded-proto is believed from trusted addresses alone, and there every way it names counts: a request that was
  // plain on any hop was plain. Without the header, this connection decides.
  return ({ socket, headers }) => {
    if (!isTrusted) return false
    const forwardedProto = headers['x-forwarded-proto']
    return forwardedProto !== undefined && isTrusted(socket.remoteAddress)
      ? String(forwardedProto)
          .split(',')
          .some(way => way.trim().toLowerCase() !== 'https')
      : !('encrypted' in socket)
  }
}

export const createTransportProblem = (isPlain: IsPlain): TransportProblem => {
  // Nearly all requests name the same host.
  let goodHost = ''
  const hostProblem = (host: string | undefined, httpVersion: string): Problem | undefined => {
    if (host === goodHost) return undefined
    if (!host) return httpVersion === '1.1' ? badHttp(sentences.http.hostMissing) : undefined
    if (!hostForm.test(host)) return badHttp(sentences.http.host(host))
    goodHost = host
    return undefined
  }

  return request => {
    const { headers } = request
    const problem = hostProblem(headers.host, request.httpVersion) ?? httpProblem(request)
    if (problem) return problem
    return isPlain(request) ? badRequest(sentences.http.plain) : undefined
  }
}

// RFC 9110 and 9112, where Node's parser is more patient.
const httpProblem = (request: IncomingMessage): Problem | undefined => {
  const { httpVersion, headers } = request
  const transferEncoding = headers['transfer-encoding']
  if (httpVersion !== '1.1' && httpVersion !== '1.0' && !isHttp2(request))
    return badHttp(sentences.http.version(httpVersion))
  if (transferEncoding === undefined) return undefined
  if (httpVersion === '1.0') return badHttp(sentences.http.transferEncodingInHttp10)
  return transferEncoding.toLowerCase() === 'chunked'
    ? undefined
    : badHttp(sentences.http.transferEncoding(transferEncoding))
}

// A name, an IPv4 address or an IPv6 address in brackets, as a URL may have them. More than one have a blank between.
const hostForm = /^(?:[A-Za-z0-9._~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/
