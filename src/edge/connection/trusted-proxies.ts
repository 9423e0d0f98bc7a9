// The proxies whose x-forwarded-* headers are trusted: `server.trustedProxies`. A client of a Unix socket has no address, and is
// trusted if the list has `unix`.

import { BlockList, isIPv6 } from 'node:net'

/** Whether an address is one of a trusted proxy. */
export type IsTrusted = (address: string | undefined) => boolean

/** Stands for the peers of a Unix socket in the list. */
const unix = 'unix'

/**
 * @param proxies addresses, CIDR ranges and `unix`
 * @param isUnix whether connections come over a Unix socket; over TCP a peer has no address once it is gone
 */
export const createIsTrusted = (
  proxies: readonly string[],
  isUnix: () => boolean = () => false,
): IsTrusted => {
  const list = new BlockList()
  const trustsUnix = proxies.includes(unix)
  for (const range of proxies) {
    if (range === unix) continue
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  // Most lists are empty, and each connection is looked up.
  const hasAddresses = list.rules.length > 0
  return address =>
    address === undefined ? trustsUnix && isUnix() : hasAddresses && list.check(address, familyOf(address))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')
