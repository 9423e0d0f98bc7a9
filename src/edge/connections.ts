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
  // Requests being answered by connection; undefined until the first one arrives.
  const answering = new Map<Socket, number | undefined>()
  server.on('connection', (socket: Socket) => {
    answering.set(socket, undefined)
    socket.once('close', () => answering.delete(socket))
  })
  server.on('request', ({ socket }, response) => {
    answering.set(socket, (answering.get(socket) ?? 0) + 1)
    response.once('close', () => {
      if (answering.has(socket)) answering.set(socket, (answering.get(socket) ?? 1) - 1)
    })
  })
  const closeThose = (mayGo: (requests: number | undefined) => boolean) => {
    for (const [socket, requests] of answering) if (mayGo(requests)) socket.destroy()
  }
  server.closeIdleConnections = () => closeThose(requests => requests === 0)
  return { closeSilent: () => closeThose(requests => !requests) }
}
