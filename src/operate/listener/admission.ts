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
    /**
     * Answered without the token. For what any client of the listener may have: health, metrics, and the fixed files of a
     * page; never for the data that such a page shows.
     */
    readonly public?: true
    /** Spends the provider's quota, with a request that a browser may send for a page, an image, a link or a form. */
    readonly spends?: true
    /** Reads or changes keys and subscribers: refused unless a token is configured. */
    readonly administers?: true
  }
}

export type AdmissionOptions = {
  /** Of the settings, for sentences. */
  readonly section: 'ops' | 'health'
  /** Where the listener listens: an address, or a name that is then allowed. */
  readonly host: string
  readonly allowedHosts: readonly string[]
  /** The token that all but the public routes require; null for none. */
  readonly token: string | null
}

/** Why a request for such a route is refused; an unknown path says nothing of itself. */
export type Admit = (request: IncomingMessage, access: FastifyContextConfig) => Refusal | undefined

export const createAdmit = ({ section, host, allowedHosts, token }: AdmissionOptions): Admit => {
  const names = new Set(['localhost', host, ...allowedHosts].map(canonical))
  const tokenFault = token === null ? undefined : createTokenFault(token)
  return (request, access) => {
    // Every value, as often as it was sent.
    const { host: hosts = [], authorization = [] } = request.headersDistinct
    const fault = hostFault(hosts, names, section) ?? pageFault(request, hosts[0] ?? '')
    if (fault) return fault
    if (access.administers && !tokenFault) return tokenUnset()
    // An unknown path needs the token too: it may be there one day.
    if (tokenFault) return access.public ? undefined : tokenFault(authorization)
    return access.spends ? browserFault(request) : undefined
  }
}

// A page can make a name of its own resolve to this address (DNS rebinding), and then sends requests as if it were ours. It can't
// do that with an address, so every address is allowed: a pod is scraped and probed by its own.
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

// Checks the headers by which browsers name the sending page; only browsers send them, and no page can change them.
const pageFault = ({ headersDistinct }: IncomingMessage, host: string): Refusal | undefined => {
  const { origin: origins = [], 'sec-fetch-site': sites = [] } = headersDistinct
  const own = [`http://${host}`.toLowerCase(), `https://${host}`.toLowerCase()]
  const foreign = origins.find(origin => !own.includes(origin.toLowerCase()))
  // A proxy may have replaced the host. The browser knows whether the page came from here, where it says so.
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

// Keys are what consumers pay for: on loopback too every user of the machine could make one.
const tokenUnset = (): Refusal =>
  new Refusal(403, 'token_unset', 'ops.token (ABOHAWA_OPS__TOKEN) is required to administer keys here')

// Without a token nothing distinguishes the operator's own wish from a link in a mail, which browsers send as if its address had
// been typed (`none`). Over plain HTTP to anything but loopback they say nothing of it at all, and an image of any page
// looks like this. So what spends is for tools, and for the pages of this listener.
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
