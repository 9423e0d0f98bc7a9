// The proxies whose x-forwarded-* headers are trusted: `server.trustedProxies`.

import { BlockList, isIPv6 } from 'node:net'

/** Whether an address is one of a trusted proxy; a client that is gone has none. */
export type IsTrusted = (address: string | undefined) => boolean

/** @param proxies addresses and CIDR ranges */
export const createIsTrusted = (proxies: readonly string[]): IsTrusted => {
  const list = new BlockList()
  for (const range of proxies) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  // Most lists are empty, and each connection is looked up.
  const hasAddresses = list.rules.length > 0
  return address => hasAddresses && address !== undefined && list.check(address, familyOf(address))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')
