// Which addresses belong to proxies whose words about a request are believed: `server.trustedProxies`.

import { BlockList, isIPv6 } from 'node:net'

/** Whether an address is one of a trusted proxy; false for none. */
export type IsTrusted = (address: string | undefined) => boolean

/** @param ranges addresses and CIDR ranges */
export const createIsTrusted = (ranges: readonly string[]): IsTrusted => {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return address => address !== undefined && list.check(address, familyOf(address))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')
