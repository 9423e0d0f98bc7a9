// What is read of a request's head before its key: whether it came over HTTPS and is valid HTTP, its id, and the path that
// the router looks up. So key and quota come before any refusal of a path. The start-up rule for plain HTTP is in the config.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv6, type Socket } from 'node:net'
import { holdsKey } from '../key-redaction.ts'
import { badHttp, badRequest, type Problem } from './problem.ts'
import { sentences } from './sentences.ts'

export type TransportProblem = (request: IncomingMessage) => Problem | undefined

/** Whether a request came over plain HTTP where HTTPS is required. */
export type IsPlain = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => boolean

/** @param trustedProxies addresses and CIDR ranges that may end TLS for us; HTTPS is required where there are any */
export const createIsPlain = (trustedProxies: readonly string[]): IsPlain => {
  const trusted = addressesOf(trustedProxies)
  const isTrusted = ({ remoteAddress }: Socket): boolean =>
    remoteAddress !== undefined && trusted.check(remoteAddress, familyOf(remoteAddress))

  // x-forwarded-proto is believed from trusted addresses alone, and there every way it names counts: a request that was
  // plain on any part of its way was plain. Who says nothing of a way before is judged by this connection.
  return ({ socket, headers }) => {
    if (trustedProxies.length === 0) return false
    const forwardedProto = headers['x-forwarded-proto']
    return forwardedProto !== undefined && isTrusted(socket)
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
const httpProblem = ({ httpVersion, headers }: IncomingMessage): Problem | undefined => {
  const transferEncoding = headers['transfer-encoding']
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return badHttp(sentences.http.version(httpVersion))
  if (transferEncoding === undefined) return undefined
  if (httpVersion === '1.0') return badHttp(sentences.http.transferEncodingInHttp10)
  return transferEncoding.toLowerCase() === 'chunked'
    ? undefined
    : badHttp(sentences.http.transferEncoding(transferEncoding))
}

// A name, an IPv4 address or an IPv6 address in brackets, as a URL may have them. More than one have a blank between.
const hostForm = /^(?:[A-Za-z0-9._~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/
const addressesOf = (ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return list
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/

// A name of this process by chance and a running number: no two are equal, at the price of an addition.
const process = randomBytes(9).toString('base64url')
let made = 0

/** The consumer's own id when it is a sane one, else a new one. An id that holds an API key is not sane: it is echoed and logged. */
export const requestIdOf = (given: string | undefined): string => {
  if (given !== undefined && sane.test(given) && !holdsKey(given)) return given
  made += 1
  return `${process}-${made.toString(36)}`
}

// The root of the server, where nothing is. A path with an empty segment names nothing either; the router would take it
// for a path parameter.
const nowhere = '/'

/** The path and query to look up; for a URL that has no path to look up, the root. */
export const routableUrl = (url: string): string => {
  const relative = withoutOrigin(url)
  const path = withoutQuery(relative)
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('//')) return nowhere
  // The router takes a # for the end of the path.
  if (path.includes('#') || (path.includes('%') && !isDecodable(path))) return nowhere
  return relative
}

/** The path of a URL in origin form or in absolute form. */
export const pathOf = (url: string): string => withoutQuery(withoutOrigin(url))

/** Whether a path is percent-encoded UTF-8. */
export const isDecodable = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

const withoutOrigin = (url: string): string =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/]*/i, '')

const withoutQuery = (url: string): string => {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
