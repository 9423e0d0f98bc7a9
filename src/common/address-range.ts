// IP addresses and CIDR ranges in lists. An IPv4 address that is mapped into IPv6 is the IPv4 address.

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether a text is an IP address, or a range in CIDR notation. */
export const isAddressRange = (value: string): boolean => {
  const [address = '', bits, ...rest] = value.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** The range that a text stands for: of `10.0.0.5/8` it is `10.0.0.0/8`; of one address or a whole range the text itself. */
export const wholeRange = (value: string): string => {
  const [address = '', bits] = value.split('/')
  if (bits === undefined) return value
  const family = isIP(address) === 6 ? ipaddr.IPv6 : ipaddr.IPv4
  const first = family.networkAddressFromCIDR(value).toString()
  return family.parse(address).toString() === first ? value : `${first}/${bits}`
}

/** Whether a text is an address or a whole range: who writes `10.0.0.5/8` may have meant one address. */
export const isWholeRange = (value: string): boolean => isAddressRange(value) && wholeRange(value) === value

/** Without the name of the interface that a link-local address of this machine has, such as `%br-lan`. */
export const withoutZone = (address: string): string => address.replace(/%.*$/, '')

/** Whether an address is in one of the ranges. Undefined, that of a client that is gone, is in none. */
export const createAddressMatch = (given: readonly string[]): ((address: string | undefined) => boolean) => {
  const ranges = given.map(rangeOf)
  return address => {
    // Most lists are empty, and each connection is looked up.
    if (ranges.length === 0 || address === undefined) return false
    return ipaddr.subnetMatch(ipaddr.process(withoutZone(address)), { listed: ranges }, 'other') === 'listed'
  }
}

const rangeOf = (given: string): [ipaddr.IPv4 | ipaddr.IPv6, number] => {
  const range = ipaddr.parseCIDR(given.includes('/') ? given : `${given}/${isIP(given) === 6 ? 128 : 32}`)
  const [address, bits] = range
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= mappedBits
    ? [address.toIPv4Address(), bits - mappedBits]
    : range
}
/** Of an IPv6 address, those before the IPv4 address that is mapped into it. */
const mappedBits = 96
