// The connections of a server that is closing: which of them may go at once, which are still owed an answer, and which
// never asked for one. Node counts a connection that it has accepted but not heard from as idle and drops it, although
// its request may be on the way; here it is waited for.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = {
  /** Drops every connection on which no request is being answered, heard from or not. */
  closeSilent(): void
}

/** Follows the server's connections, and replaces what Node would drop when it closes by those that are really idle. */
export const trackConnections = (server: Server): Connections => {
  // By address, because under TLS the socket that connects and the socket that asks are two objects of one connection.
  const open = new Map<string, { socket: Socket; requests: number | undefined }>()
  const addressOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket)
    const connection = { socket, requests: undefined }
    open.set(address, connection)
    socket.once('close', () => {
      if (open.get(address) === connection) open.delete(address)
    })
  })
  server.on('request', ({ socket }, response) => {
    const connection = open.get(addressOf(socket))
    if (!connection) return
    connection.requests = (connection.requests ?? 0) + 1
    response.once('close', () => {
      connection.requests = (connection.requests ?? 1) - 1
    })
  })
  const closeThose = (mayGo: (requests: number | undefined) => boolean) => {
    for (const { socket, requests } of open.values()) if (mayGo(requests)) socket.destroy()
  }
  server.closeIdleConnections = () => closeThose(requests => requests === 0)
  return { closeSilent: () => closeThose(requests => !requests) }
}
