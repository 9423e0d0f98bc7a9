// Why a request is refused before its endpoint is called: plain HTTP where HTTPS is required, invalid HTTP, key, quota or method.

import type { IncomingMessage } from 'node:http'
import { isoOf } from '../common/calendar.ts'
import type { KeyRefusal } from '../keys/authentication.ts'
import { keyPrefix, testKeyPrefix } from '../keys/key-form.ts'
import type { RateRefusal } from '../keys/rates.ts'
import type { RestrictionRefusal } from '../keys/restrictions.ts'
import type { Restrictions } from '../stores/store.ts'
import type { IsTrusted } from './connection/client-address.ts'
import { isHttp2 } from './connection/connection.ts'
import { methodOf } from './connection/http2-request.ts'
import { badHttp, badRequest, Problem } from './problem.ts'
import { sentences } from './sentences.ts'

export type Transport = ReturnType<typeof createTransport>

/** @param isTrusted who may end TLS for us; undefined where nobody may, and HTTPS is not required */
export const createTransport = (isTrusted: IsTrusted | undefined) => {
  // x-forwarded-proto is believed only from trusted addresses: a request that was plain on any hop was plain. Without the header, this
  // connection decides.
  const isPlain = ({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean => {
    if (!isTrusted) return false
    const forwardedProto = headers['x-forwarded-proto']
    return forwardedProto !== undefined && isTrusted(socket.remoteAddress)
      ? String(forwardedProto)
          .split(',')
          .some(way => way.trim().toLowerCase() !== 'https')
      : !('encrypted' in socket)
  }
  // In a chain of proxies, the first name is the consumer's.
  const forwardedHost = ({ socket, headers }: IncomingMessage): string | undefined => {
    const [host = ''] = String(headers['x-forwarded-host'] ?? '').split(',', 1)
    return isTrusted?.(socket.remoteAddress) && hostForm.test(host.trim()) ? host.trim() : undefined
  }
  return {
    /** Whether plain HTTP is refused, so that each request has to be looked at. */
    isHttpsRequired: isTrusted !== undefined,
    /** Whether a request came over plain HTTP where HTTPS is required. */
    isPlain,
    /** The scheme and host that the consumer asked at, as a trusted proxy tells; undefined for a request that names no host. */
    originOf: (request: IncomingMessage): string | undefined => {
      const host = forwardedHost(request) ?? request.headers.host
      return host && `${isTrusted || 'encrypted' in request.socket ? 'https' : 'http'}://${host}`
    },
    transportProblem: (request: IncomingMessage): Problem | undefined =>
      hostProblem(request) ??
      httpProblem(request) ??
      (isPlain(request) ? badRequest(sentences.http.plain) : undefined),
  }
}

const hostProblem = ({ headers: { host }, httpVersion }: IncomingMessage): Problem | undefined => {
  if (!host) return httpVersion === '1.1' ? badHttp(sentences.http.hostMissing) : undefined
  return hostForm.test(host) ? undefined : badHttp(sentences.http.host(host))
}

// A name, an IPv4 address or an IPv6 address in brackets, as a URL may have them. More than one have a blank between.
const hostForm = /^(?:[A-Za-z0-9._~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/

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

export const keyProblem = (refusal: KeyRefusal, { headers, url = '' }: IncomingMessage): Problem => {
  // Where the key may have been sent instead.
  const elsewhere =
    headers.authorization === undefined
      ? url.includes(keyPrefix) || url.includes(testKeyPrefix)
        ? 'the URL'
        : undefined
      : 'the header authorization'
  const sentence = refusal === 'missing' ? sentences.key.missing(elsewhere) : sentences.key[refusal]
  return new Problem(401, sentence, challenge)
}

/** RFC 9110 requires it with every 401. */
export const challenge = { 'www-authenticate': 'ApiKey realm="abohawa"' } as const

/** The 403 of a key that is bound to other pages, addresses or endpoints. */
export const restrictionProblem = (
  refusal: RestrictionRefusal,
  { origins, endpoints }: Restrictions,
  given: { origin: string | undefined; address: string | undefined; endpoint: string },
): Problem => {
  switch (refusal) {
    case 'origin-not-allowed':
      return new Problem(403, sentences.bound.origin(given.origin, origins ?? []))
    case 'address-not-allowed':
      return new Problem(403, sentences.bound.address(given.address ?? 'unknown'))
    case 'endpoint-not-allowed':
      return new Problem(403, sentences.bound.endpoint(given.endpoint, endpoints ?? []))
  }
}

/**
 * The 429 of the contract, with its own fields in the body.
 * @param cost the units of a request that may take several, of which `remaining` are left
 */
export const quotaProblem = (
  limit: number,
  resetsAt: number,
  now: number,
  cost?: number | undefined,
  remaining = 0,
): Problem =>
  new Problem(
    429,
    cost === undefined || remaining === 0
      ? sentences.quotaExhausted(limit)
      : sentences.quotaInsufficient(limit, cost, remaining),
    { 'retry-after': String(Math.max(1, Math.ceil((resetsAt - now) / 1000))) },
    { fields: { limit, reset_at: isoOf(resetsAt), ...(cost === undefined ? {} : { remaining, cost }) } },
  )

/** The 429 of a limit by the second or minute; `reset_at` is when the next request has room. */
export const rateProblem = ({ policy, limit, waitMs }: RateRefusal, now: number): Problem =>
  new Problem(
    429,
    sentences.rateLimited(policy, limit),
    { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
    { fields: { policy, limit, reset_at: isoOf(now + Math.ceil(waitMs)) } },
  )

export const methodProblem = (request: Pick<IncomingMessage, 'method' | 'headers'>): Problem =>
  new Problem(405, sentences.http.method(methodOf(request)), methods)

/** The header of every 405. */
export const methods = { allow: 'GET, HEAD' } as const
