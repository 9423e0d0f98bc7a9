// Where a command may send: to this machine and private networks, to others if that is allowed, and never to addresses that no gateway
// has. Connections get the very addresses that were checked, so that a name can't lead elsewhere later.

import { lookup as resolve } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { InputError } from './errors.ts'

const nearRanges = ['loopback', 'private', 'uniqueLocal']
const forbiddenRanges = ['unspecified', 'linkLocal', 'multicast', 'broadcast', 'deprecatedSiteLocal']
// Reserved, and what serves the metadata of cloud machines.
const forbiddenNets = [
  '192.0.0.0/24',
  '240.0.0.0/4',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::/32',
].map(net => ipaddr.parseCIDR(net))

/** An address, one that is mapped into IPv6 as what it is, and the IPv4 address within: compatible, of NAT64 or of 6to4. */
const formsOf = (text: string): (ipaddr.IPv4 | ipaddr.IPv6)[] => {
  const address = ipaddr.process(text)
  const bytes = address.toByteArray()
  const range = address.range()
  const isCompatible =
    bytes.length === 16 && range !== 'loopback' && bytes.slice(0, 12).every(byte => byte === 0)
  if (range === 'rfc6052' || isCompatible) return [address, new ipaddr.IPv4(bytes.slice(12))]
  return range === '6to4' ? [address, new ipaddr.IPv4(bytes.slice(2, 6))] : [address]
}

export const isLoopback = (address: string): boolean => ipaddr.process(address).range() === 'loopback'
const isNear = (address: string): boolean => nearRanges.includes(ipaddr.process(address).range())
const isForbidden = (address: string): boolean =>
  formsOf(address).some(
    form =>
      forbiddenRanges.includes(form.range()) ||
      forbiddenNets.some(net => net[0].kind() === form.kind() && form.match(net)),
  )

/** Of a URL, without the brackets of IPv6. Spellings of an IPv4 address as one number, octal or hexadecimal are undone. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/**
 * @param what as the subject of the sentence
 * @throws InputError for addresses that no gateway has, and, unless `allowsRemote`, for those that are not near
 */
export const checkAddresses = (what: string, addresses: readonly string[], allowsRemote: boolean): void => {
  const bad = addresses.find(isForbidden)
  if (bad !== undefined)
    throw new InputError(
      `${what} leads to ${bad}, which is link-local, multicast, reserved or a metadata service; no gateway listens there`,
    )
  if (!allowsRemote && (addresses.length === 0 || !addresses.every(isNear)))
    throw new InputError(`${what} is neither this machine nor in a private network; --allow-remote allows it`)
}

/** Gives these addresses for whatever name. */
export const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_name, { all }, callback) => {
    const found = addresses.map(address => ({ address, family: isIP(address) }))
    const [first] = found
    if (first === undefined) callback(new Error('there is no address'), [])
    else if (all) callback(null, found)
    else callback(null, first.address, first.family)
  }

/** Resolves a name for one connection, and gives it only what `checkAddresses` lets through. */
export const checkedLookup =
  (what: string, allowsRemote: boolean): LookupFunction =>
  (name, options, callback) =>
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, [])
      const addresses = found.map(({ address }) => address)
      try {
        checkAddresses(what, addresses, allowsRemote)
      } catch (refused) {
        return callback(refused as Error, [])
      }
      return lookupOf(addresses)(name, options, callback)
    })
