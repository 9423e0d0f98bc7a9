// The address of a client in the form that the log may hold: the connection's other end, or behind trusted proxies the last
// address of `x-forwarded-for` that is not a proxy's. It is whole, cut to its network, or left out; text that is no address is
// never logged.

import { isIP, SocketAddress } from 'node:net'
import type { IsTrusted } from './trusted-proxies.ts'

/** `prefix`: the /24 of an IPv4 address, the /48 of an IPv6 address. */
export type AddressForm = 'full' | 'prefix' | 'none'

/** The other end of a connection. */
export type Peer = {
  /** In the form that is logged; undefined for none. */
  readonly address: string | undefined
  /** Whether it is a trusted proxy, so that each request may come from another client. */
  readonly isProxy: boolean
}

export type ClientAddress = {
  /** @param address as Node gives it; undefined when the connection is gone */
  ofPeer(address: string | undefined): Peer
  /** The client of a request that came over a trusted proxy. @param forwardedFor the header, all lines of it joined */
  behind(peer: Peer, forwardedFor: string | undefined): string | undefined
}

// A chain of proxies is short; what a client wrote before them is not read.
const maxHops = 16

export const createClientAddress = (isTrusted: IsTrusted, form: AddressForm): ClientAddress => ({
  ofPeer: address => {
    const plain = address === undefined ? undefined : plainAddress(address)
    return { address: masked(plain, form), isProxy: isTrusted(plain) }
  },
  behind: (peer, forwardedFor) => {
    let client = peer.address
    if (forwardedFor === undefined) return client
    // From the right: each proxy has added the address that it saw.
    for (const hop of forwardedFor.split(',').slice(-maxHops).reverse()) {
      const address = plainAddress(hop.trim())
      // Entries before an unreadable hop may be forged.
      if (address === undefined) return client
      client = masked(address, form)
      if (!isTrusted(address)) return client
    }
    return client
  },
})

/** Without a port, and an IPv4 address in its own spelling; undefined for what is no address. */
const plainAddress = (given: string): string | undefined => {
  const address = /^\[(.*)\](?::\d{1,5})?$/.exec(given)?.[1] ?? given.replace(/^([\d.]+):\d{1,5}$/, '$1')
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? address
  const version = isIP(mapped)
  // A zone names an interface of the other machine, and may be any text.
  if (version === 0 || mapped.includes('%')) return undefined
  return version === 4 ? mapped : new SocketAddress({ address: mapped, family: 'ipv6' }).address
}

const masked = (address: string | undefined, form: AddressForm): string | undefined => {
  if (address === undefined || form === 'none') return undefined
  if (form === 'full') return address
  if (!address.includes(':')) return `${address.replace(/\.\d+$/, '')}.0/24`
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups =
    tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill('0'), ...after]
  return `${new SocketAddress({ address: `${groups.slice(0, 3).join(':')}::`, family: 'ipv6' }).address}/48`
}
