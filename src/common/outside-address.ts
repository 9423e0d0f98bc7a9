// Where a command may send when an address was given to it: to this machine and private networks, to others if that is
// allowed, and never to addresses that no gateway has. Checks what a name resolves to, all of it, and gives connections these
// very addresses: a name that resolves to another address later leads nowhere else.

import { lookup as resolve } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { InputError } from './errors.ts'

type Net = readonly [address: string, prefix: number]

const loopbackNets: readonly Net[] = [
  ['127.0.0.0', 8],
  ['::1', 128],
]
// RFC 1918 and RFC 4193.
const privateNets: readonly Net[] = [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['fc00::', 7],
]
// Unspecified, link-local, multicast, reserved with broadcast, and what serves the metadata of cloud machines.
const forbidden4: readonly Net[] = [
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
]
const forbidden6: readonly Net[] = [
  ['::', 128],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
  ['fd00:ec2::', 32],
]

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

const listOf = (nets: readonly Net[]): BlockList => {
  const list = new BlockList()
  for (const [address, prefix] of nets) list.addSubnet(address, prefix, familyOf(address))
  return list
}

const hexOf = (address: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** The same addresses within IPv6: compatible, of NAT64 and of 6to4. Mapped ones are compared as IPv4 by the list. */
const within6 = ([address, prefix]: Net): Net[] => [
  [`::${hexOf(address)}`, 96 + prefix],
  [`64:ff9b::${hexOf(address)}`, 96 + prefix],
  [`2002:${hexOf(address)}::`, 16 + prefix],
]

const loopback = listOf(loopbackNets)
const near = listOf([...loopbackNets, ...privateNets])
// ::1 is within the compatible form of 0.0.0.0/8.
const forbidden = listOf([...forbidden4, ...forbidden6, ...forbidden4.flatMap(within6)])

export const isLoopback = (address: string): boolean => loopback.check(address, familyOf(address))
const isNear = (address: string): boolean => !isForbidden(address) && near.check(address, familyOf(address))
const isForbidden = (address: string): boolean =>
  !isLoopback(address) && forbidden.check(address, familyOf(address))

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
      `${what} leads to ${bad}, an address that is link-local, multicast, reserved or of a metadata service; allowed: one that a gateway listens on`,
    )
  if (!allowsRemote && (addresses.length === 0 || !addresses.every(isNear)))
    throw new InputError(
      `${what} is neither this machine nor in a private network; --allow-remote sends there all the same`,
    )
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
