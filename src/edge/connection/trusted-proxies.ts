// Which addresses belong to proxies whose x-forwarded-* headers are believed: `server.trustedProxies`. Whoever connects to a
// Unix socket has no address, and is believed if `unix` is there.

import { BlockList, isIPv6 } from 'node:net'

/** Whether an address is one of a trusted proxy. */
export type IsTrusted = (address: string | undefined) => boolean

/** The peer of a Unix socket among addresses. */
const unix = 'unix'

/**
 * @param proxies addresses, CIDR ranges and `unix`
 * @param isUnix whether connections come over a Unix socket; over another one a peer has no address when it is gone
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
  return address => (address === undefined ? trustsUnix && isUnix() : list.check(address, familyOf(address)))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')
