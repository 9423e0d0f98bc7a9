// The connections on which no request is being answered. A closing server waits for every connection, and one that never
// sends a request, or not all of it, would keep the process for ever.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export type SilentConnections = { close(): void }

export const trackConnections = (server: Server): SilentConnections => {
  const open = new Set<Socket>()
  const answering = new Map<Socket, number>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      answering.delete(socket)
    })
  })
  server.on('request', ({ socket }, response) => {
    answering.set(socket, (answering.get(socket) ?? 0) + 1)
    response.once('close', () => answering.set(socket, (answering.get(socket) ?? 1) - 1))
  })
  return {
    close: () => {
      for (const socket of open) if (!answering.get(socket)) socket.destroy()
    },
  }
}
