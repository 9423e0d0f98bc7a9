// The one place that decides whether a request to the ops listener is admitted: the name it was sent to and the page it
// was sent from. The listener has no keys, so what it must tell apart is a tool of the operator and a web page that the
// operator's browser has open. What a request may ask for is not judged here.

import type { IncomingMessage } from 'node:http'
import { isIP, isIPv6 } from 'node:net'
import { quoted, Refusal } from './refusal.ts'

export type AdmissionOptions = {
  /** Where the listener listens: an address, or a name that is then allowed. */
  readonly host: string
  /** Further names by which the listener may be asked. */
  readonly allowedHosts: readonly string[]
}

/** Why a request is not admitted, or undefined. `spends`: whether it would spend the provider's quota. */
export type Admit = (request: IncomingMessage, spends: boolean) => Refusal | undefined

export const createAdmit = ({ host, allowedHosts }: AdmissionOptions): Admit => {
  const names = new Set(['localhost', host, ...allowedHosts].map(canonical))
  return (request, spends) => {
    const hosts = valuesOf(request, 'host')
    return hostFault(hosts, names) ?? pageFault(request, hosts[0] ?? '', spends)
  }
}

// A page can make a name of its own resolve to this address (DNS rebinding), and then asks as if it were ours. It can't
// do that with an address, so every address is allowed: a pod is scraped and probed by its own.
const hostFault = (hosts: readonly string[], names: ReadonlySet<string>): Refusal | undefined => {
  const [given] = hosts
  const host = given === undefined ? undefined : hostIn(given)
  if (hosts.length === 1 && host !== undefined && (isIP(host) !== 0 || names.has(host))) return undefined
  const shown = given === undefined ? 'missing' : hosts.length > 1 ? 'given more than once' : quoted(given)
  return new Refusal(
    403,
    'host',
    `the host header is ${shown}; allowed: an IP address, localhost, the name in ops.host and those in ops.allowedHosts`,
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

// What browsers say of the page that asks; nothing else sends it, and no page can change it.
const pageFault = (request: IncomingMessage, host: string, spends: boolean): Refusal | undefined => {
  const own = [`http://${host}`.toLowerCase(), `https://${host}`.toLowerCase()]
  const foreign = valuesOf(request, 'origin').find(origin => !own.includes(origin.toLowerCase()))
  if (foreign !== undefined)
    return new Refusal(
      403,
      'origin',
      `the origin header is ${quoted(foreign)}; allowed: none, or that of this listener`,
    )
  const sites = valuesOf(request, 'sec-fetch-site')
  const other = sites.find(site => site !== 'same-origin' && site !== 'none')
  if (other !== undefined)
    return new Refusal(
      403,
      'fetch_site',
      `the sec-fetch-site header is ${quoted(other)}; allowed: none and same-origin, so enter the address by hand`,
    )
  // Over plain HTTP to anything but loopback browsers leave the header out, and an image of any page looks like this.
  if (spends && sites.length === 0 && /^mozilla\//i.test(request.headers['user-agent'] ?? ''))
    return new Refusal(
      403,
      'browser',
      'the request comes from a browser that does not tell which page sent it; allowed: a tool such as curl, or a browser on a loopback address',
    )
  return undefined
}

/** Every value of a header, as often as it was sent. */
const valuesOf = ({ rawHeaders }: IncomingMessage, name: string): string[] => {
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '')
  return values
}
