// The connections of a server that is closing: which of them may go at once, which are still owed an answer, and which
// never asked for one. Node counts a connection that it has accepted but not heard from as idle and drops it, although
// its request may be on the way; here it is waited for.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { noKeySaid, type SaidKey } from '../metering/authentication.ts'

export type Connection = {
  readonly socket: Socket
  /** How many are being answered; undefined until the first. */
  requests: number | undefined
  /** The key that came with the last request. */
  readonly said: SaidKey
}

export type Connections = {
  /** The connection of a socket on which a request came. */
  of(socket: Socket): Connection
  /** Drops every connection on which no request is being answered, heard from or not. */
  closeSilent(): void
}

// On the socket itself, because it is looked up with every request.
const mark = Symbol('connection')
type Marked = Socket & { [mark]?: Connection }

/** Follows the server's connections, and replaces what Node would drop when it closes by those that are really idle. */
export const trackConnections = (server: Server): Connections => {
  const open = new Set<Connection>()

  const track = (socket: Marked): Connection => {
    const connection = { socket, requests: undefined, said: noKeySaid() }
    open.add(connection)
    socket[mark] = connection
    socket.once('close', () => open.delete(connection))
    return connection
  }
  server.on('connection', track)
  // Under TLS the socket that connects and the socket that asks are two objects of one connection.
  server.on('secureConnection', (asking: Marked) => {
    for (const connection of open)
      if (
        connection.socket.remotePort === asking.remotePort &&
        connection.socket.remoteAddress === asking.remoteAddress
      )
        asking[mark] = connection
  })

  const closeThose = (mayGo: (requests: number | undefined) => boolean) => {
    for (const { socket, requests } of open) if (mayGo(requests)) socket.destroy()
  }
  server.closeIdleConnections = () => closeThose(requests => requests === 0)
  return {
    of: (socket: Marked) => socket[mark] ?? track(socket),
    closeSilent: () => closeThose(requests => !requests),
  }
}
