// Whether a request came the way it must: over HTTPS, ended here or at a trusted proxy, or in the clear on a loopback
// address where neither is configured. Also what HTTP itself demands of it. The start-up rule stands in the config.

import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv6, type Socket } from 'node:net'
import type { Asked } from './asked.ts'
import { badRequest, type Problem } from './problem.ts'

export type TransportProblem = (request: IncomingMessage, asked: Asked) => Problem | undefined

/** @param trustedProxies addresses and CIDR ranges that may end TLS for us */
export const createTransportProblem = (trustedProxies: readonly string[]): TransportProblem => {
  const trusted = addressesOf(trustedProxies)
  const isTrusted = ({ remoteAddress }: Socket): boolean =>
    remoteAddress !== undefined && trusted.check(remoteAddress, familyOf(remoteAddress))

  // x-forwarded-proto is believed from trusted addresses alone, where its last entry is what came to the proxy; a
  // request that was plain on any part of its way was plain.
  const cameOverHttps = ({ socket }: IncomingMessage, { forwardedProto = '' }: Asked): boolean => {
    const ways = forwardedProto.split(',')
    const told = ways.every(way => way.trim().toLowerCase() === 'https')
    return told && (isTrusted(socket) || 'encrypted' in socket)
  }

  return (request, asked) => {
    if (request.httpVersion === '1.1' && !asked.host)
      return badRequest('the host header is missing; HTTP/1.1 requires it')
    if (trustedProxies.length > 0 && !cameOverHttps(request, asked))
      return badRequest('the request came over plain HTTP; HTTPS is required')
    return undefined
  }
}

const addressesOf = (ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return list
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')
