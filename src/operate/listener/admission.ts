// Admits a request to the ops or health listener by its host, the page it came from, and the token. It tells an operator's tool
// from a web page in the operator's browser.

import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP, isIPv6 } from 'node:net'
import type { FastifyContextConfig } from 'fastify'
import { quoted } from '../../common/outside-text.ts'
import { Refusal } from './refusal.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered without the token: health, metrics and the files of a page, never its data. */
    readonly public?: true
    /** Spends the provider's quota, with a request that any web page can make a browser send. */
    readonly spends?: true
    /** Reads or changes keys and subscribers: refused unless a token is configured. */
    readonly administers?: true
  }
}

export type AdmissionOptions = {
  /** Of the settings, named in errors. */
  readonly section: 'ops' | 'health'
  /** Where the listener listens: an address, or a name that is then allowed. */
  readonly host: string
  readonly allowedHosts: readonly string[]
  /** The token that all but the public routes require; null for none. */
  readonly token: string | null
}

/** Why a request for such a route is refused. */
export type Admit = (request: IncomingMessage, access: FastifyContextConfig) => Refusal | undefined

export const createAdmit = ({ section, host, allowedHosts, token }: AdmissionOptions): Admit => {
  const names = new Set(['localhost', host, ...allowedHosts].map(canonical))
  const tokenFault = token === null ? undefined : createTokenFault(token)
  return (request, access) => {
    // With every repetition of a header.
    const { host: hosts = [], authorization = [] } = request.headersDistinct
    const fault = hostFault(hosts, names, section) ?? pageFault(request, hosts[0] ?? '')
    if (fault) return fault
    if (access.administers && !tokenFault) return tokenUnset()
    // Unknown paths need the token too, because a later version may serve them.
    if (tokenFault) return access.public ? undefined : tokenFault(authorization)
    return access.spends ? browserFault(request) : undefined
  }
}

// A web page can make its own name resolve to this address (DNS rebinding), so names must be known. IP addresses can't be
// rebound, and pods are probed by theirs.
const hostFault = (
  hosts: readonly string[],
  names: ReadonlySet<string>,
  section: string,
): Refusal | undefined => {
  const [given] = hosts
  const host = given === undefined ? undefined : hostIn(given)
  if (hosts.length === 1 && host !== undefined && (isIP(host) !== 0 || names.has(host))) return undefined
  const shown = given === undefined ? 'none' : hosts.length > 1 ? 'several' : quoted(given)
  return new Refusal(
    403,
    'host',
    `the host header must be an IP address, localhost, the name in ${section}.host or a name in ops.allowedHosts, got ${shown}`,
  )
}

const authority = /^(?:\[(?<address>[\d:.A-Fa-f]+)\]|(?<name>[\w.-]+))(?::\d{1,5})?$/

/** The address or the canonical name in a host header, without its port; undefined when it holds neither. */
const hostIn = (header: string): string | undefined => {
  const { address, name } = authority.exec(header)?.groups ?? {}
  if (address !== undefined) return isIPv6(address) ? address : undefined
  return name === undefined ? undefined : canonical(name)
}

const canonical = (name: string): string => name.toLowerCase().replace(/\.$/, '')

// Browsers name the sending page in these headers, and no page can change them.
const pageFault = ({ headersDistinct }: IncomingMessage, host: string): Refusal | undefined => {
  const { origin: origins = [], 'sec-fetch-site': sites = [] } = headersDistinct
  const own = [`http://${host}`.toLowerCase(), `https://${host}`.toLowerCase()]
  const foreign = origins.find(origin => !own.includes(origin.toLowerCase()))
  // A proxy may have replaced the host; then the browser's own word counts.
  const isSaidOwn = sites.length === 1 && sites[0] === 'same-origin' && origins.length === 1
  if (foreign !== undefined && !isSaidOwn)
    return new Refusal(
      403,
      'origin',
      `the origin header must be http://${host} or absent, got ${quoted(foreign)}; a proxy in between must pass the host header on unchanged, with the port`,
    )
  const other = sites.find(site => site !== 'same-origin' && site !== 'none')
  if (other !== undefined)
    return new Refusal(
      403,
      'fetch_site',
      `the sec-fetch-site header must be none or same-origin, got ${quoted(other)}; enter the address by hand`,
    )
  return undefined
}

// Consumers pay for keys, and every user of the machine can reach loopback.
const tokenUnset = (): Refusal =>
  new Refusal(403, 'token_unset', 'ops.token (ABOHAWA_OPS__TOKEN) is required to administer keys here')

// Without a token, a link in a mail looks like a typed address (`none`), and over plain HTTP beyond loopback browsers send no
// such header. So requests that spend are for tools, and for the pages of this listener.
const browserFault = ({ headers, headersDistinct }: IncomingMessage): Refusal | undefined => {
  const [site] = headersDistinct['sec-fetch-site'] ?? []
  const isBrowser = site !== undefined || /^(?:mozilla|opera)\//i.test(headers['user-agent'] ?? '')
  if (!isBrowser || site === 'same-origin') return undefined
  return new Refusal(
    403,
    'browser',
    "a browser must not send this request, because it spends the provider's quota; use a tool such as curl, or set ops.token",
  )
}

// Hashed, so that texts of any length are compared in the same time.
const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer')

const createTokenFault = (token: string): ((values: readonly string[]) => Refusal | undefined) => {
  const expected = digestOf(token)
  return values => {
    const [value] = values
    if (value === undefined) return tokenRefusal('token_missing', 'none')
    if (values.length > 1) return tokenRefusal('token_wrong', 'several')
    const given = /^bearer +(\S+)$/i.exec(value)?.[1]
    if (given === undefined) return tokenRefusal('token_wrong', 'another form')
    return timingSafeEqual(digestOf(given), expected)
      ? undefined
      : tokenRefusal('token_wrong', 'another token')
  }
}

const tokenRefusal = (reason: 'token_missing' | 'token_wrong', given: string): Refusal =>
  new Refusal(
    401,
    reason,
    `the authorization header must be "Bearer TOKEN" with the token in ops.token, got ${given}`,
    {
      'www-authenticate': `Bearer realm="abohawa ops"${reason === 'token_wrong' ? ', error="invalid_token"' : ''}`,
    },
  )
