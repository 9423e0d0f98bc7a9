// Offers to upgrade the protocol, which HTTP allows a server to ignore. Node's parser stops behind such a request and loses
// what was sent with it, such as the next request of a pipeline. So the request is read again, without the offer.

import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * @param giveAgain gives the socket to the server anew, once all that came on it are answered: what is to be read stands in
 * its buffer
 */
export const ignoreUpgrades = (server: Server, giveAgain: (socket: Socket) => void): void => {
  // Without this, Node decides by the number of listeners, and the body of a request would be lost.
  Object.assign(server, {
    shouldUpgradeCallback: ({ headers }: IncomingMessage) =>
      headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0,
  })
  server.on('upgrade', (request, stream, rest) => {
    const socket = stream as Socket
    // Node hands the socket over bare: without a listener, a reset would end the process.
    if (!socket.listeners('error').includes(ignore)) socket.on('error', ignore)
    socket.unshift(Buffer.concat([withoutOffer(request), rest]))
    giveAgain(socket)
  })
}

const ignore = (): void => {}

const withoutOffer = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer => {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}
