// The connections of a server that is closing: which of them may go at once, which are still owed an answer, and which
// never asked for one. Node counts a connection that it has accepted but not heard from as idle and drops it, although
// its request may be on the way; here it is waited for.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = {
  /** A request came on a socket, and was answered or given up. */
  began(socket: Socket): void
  ended(socket: Socket): void
  /** Drops every connection on which no request is being answered, heard from or not. */
  closeSilent(): void
}

/** `requests` that are being answered; undefined until the first. */
type Connection = { readonly socket: Socket; requests: number | undefined }

/** Follows the server's connections, and replaces what Node would drop when it closes by those that are really idle. */
export const trackConnections = (server: Server): Connections => {
  const open = new Set<Connection>()
  const connectionOf = new WeakMap<Socket, Connection>()

  server.on('connection', (socket: Socket) => {
    const connection = { socket, requests: undefined }
    open.add(connection)
    connectionOf.set(socket, connection)
    socket.once('close', () => open.delete(connection))
  })
  // Under TLS the socket that connects and the socket that asks are two objects of one connection.
  server.on('secureConnection', (asking: Socket) => {
    for (const connection of open)
      if (
        connection.socket.remotePort === asking.remotePort &&
        connection.socket.remoteAddress === asking.remoteAddress
      )
        connectionOf.set(asking, connection)
  })

  const closeThose = (mayGo: (requests: number | undefined) => boolean) => {
    for (const { socket, requests } of open) if (mayGo(requests)) socket.destroy()
  }
  server.closeIdleConnections = () => closeThose(requests => requests === 0)
  return {
    began: socket => {
      const connection = connectionOf.get(socket)
      if (connection) connection.requests = (connection.requests ?? 0) + 1
    },
    ended: socket => {
      const connection = connectionOf.get(socket)
      if (connection) connection.requests = (connection.requests ?? 1) - 1
    },
    closeSilent: () => closeThose(requests => !requests),
  }
}
