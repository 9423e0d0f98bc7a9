// Addresses of clients: which are trusted proxies, who is behind them, and how much of an address is counted or logged. Text that is no
// address is never logged.

import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { createAddressMatch, withoutZone } from '../../common/address-range.ts'

/** `prefix`: the /24 of an IPv4 address, the /48 of an IPv6 address. */
export type AddressForm = 'full' | 'prefix' | 'none'

/** The other end of a connection. */
export type Peer = {
  /** Undefined for a client that is gone. */
  readonly address: string | undefined
  /** Whether it is a trusted proxy, so that each request may come from another client. */
  readonly isProxy: boolean
  /** What is logged of it; undefined for nothing. */
  readonly logged: string | undefined
}

export type IsTrusted = (address: string | undefined) => boolean

export type ClientAddress = ReturnType<typeof createClientAddress>

// Chains of proxies are short; earlier entries, which a client may forge, are not read.
const maxHops = 16

export const createIsTrusted = (proxies: readonly string[]): IsTrusted => createAddressMatch(proxies)

export const createClientAddress = (isTrusted: IsTrusted, form: AddressForm) => {
  const masked = (address: string | undefined): string | undefined => {
    if (address === undefined || form === 'none') return undefined
    if (form === 'full') return address
    return address.includes(':')
      ? `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/48`)}/48`
      : `${ipaddr.IPv4.networkAddressFromCIDR(`${address}/24`)}/24`
  }
  /** The client of a request. @param forwardedFor the header, all lines of it joined */
  const behind = ({ address, isProxy }: Peer, forwardedFor: string | undefined): string | undefined => {
    if (!isProxy || forwardedFor === undefined) return address
    let client = address
    // From the right: each proxy has added the address that it saw.
    for (const hop of forwardedFor.split(',').slice(-maxHops).reverse()) {
      const next = plainAddress(hop.trim())
      // Entries before an unreadable hop may be forged.
      if (next === undefined) return client
      client = next
      if (!isTrusted(next)) return client
    }
    return client
  }
  const ofPeer = (given: string | undefined): Peer => {
    const address = given === undefined ? undefined : plainAddress(withoutZone(given))
    return { address, isProxy: isTrusted(address), logged: masked(address) }
  }
  return {
    /** @param given the address as Node has it; undefined when the connection is gone */
    ofPeer,
    /** The client's own address; undefined when the connection is gone. */
    ofRequest: ({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined =>
      behind(ofPeer(socket.remoteAddress), headers['x-forwarded-for'] as string | undefined),
    /** What is logged of that client; undefined for nothing. */
    loggedOf: (peer: Peer, forwardedFor: string | undefined): string | undefined =>
      peer.isProxy ? masked(behind(peer, forwardedFor)) : peer.logged,
  }
}

/** What stands for one client: an IPv4 address, or the /64 of an IPv6 address, of which a machine may have all. */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address
  const plain = ipaddr.process(withoutZone(address))
  return plain instanceof ipaddr.IPv6 ? plain.parts.slice(0, 4).join(':') : plain.toString()
}

/** Without a port, and an IPv4 address in its own spelling; undefined for what is no address. */
const plainAddress = (given: string): string | undefined => {
  if (isIPv4(given)) return given
  const address = /^\[(.*)\](?::\d{1,5})?$/.exec(given)?.[1] ?? given.replace(/^([\d.]+):\d{1,5}$/, '$1')
  // A zone names an interface of the other machine, and may be any text.
  if (isIP(address) === 0 || address.includes('%')) return undefined
  return ipaddr.process(address).toString()
}
