// The connections of the API: which are accepted, when a refused client has to go, how many requests may wait on one, and which are idle
// when the gateway stops. Node bounds time, size and the number of all connections.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { ClosingReason } from '../../telemetry/label-values.ts'
import type { IsTrusted } from './client-address.ts'
import { type Carrier, type Connection, carrierOf, isHttp2, mark, type Waiting } from './connection.ts'
import { OpenConnections } from './open-connections.ts'
import { createPipelines } from './pipeline.ts'

export type ConnectionLimits = {
  readonly maxConnections: number
  /** Of those from one address, the ones without a good key. */
  readonly maxConnectionsPerAddress: number
}

export type ConnectionObserver = {
  /** @param address of the client, for `address` */
  connectionClosed(reason: ClosingReason, address?: string): void
}

export type ConnectionCount = {
  readonly open: number
  /** Of those, the ones that have not shown a good key. */
  readonly unauthenticated: number
}

export type Connections = ReturnType<typeof trackConnections>

// After so many requests without a good key, one with it is unlikely.
const maxRefusals = 100
// The highest id: no request in flight is refused.
const noStreamYet = 2 ** 31 - 1

/**
 * Tracks the server's connections, and makes Node close those that are really idle when the server closes.
 * @param isTrusted addresses that are not counted: those of proxies, which bring the requests of many
 */
export const trackConnections = (
  server: Server,
  limits: ConnectionLimits,
  isTrusted: IsTrusted,
  observer: ConnectionObserver,
) => {
  const pipelines = createPipelines(() => observer.connectionClosed('pipeline'))
  const open = new OpenConnections(limits.maxConnectionsPerAddress, isTrusted, pipelines.drop)
  let isDraining = false
  server.maxConnections = limits.maxConnections
  server.on('drop', () => observer.connectionClosed('connections'))
  // Before Node's own listener, so that a connection too many costs no TLS handshake.
  server.prependListener('connection', (socket: Socket & Carrier) => {
    if (open.accept(socket, 'setSecureContext' in server, isDraining ? afterAnswer : undefined)) return
    observer.connectionClosed('address', socket.remoteAddress)
    socket.destroy()
  })

  const known = (carrier: Carrier, socket: Socket): Connection => {
    // A connection that did not come over the network is not counted.
    carrier[mark] ??=
      open.below(socket) ?? open.track(socket, undefined, isDraining ? afterAnswer : undefined)
    return carrier[mark]
  }
  const afterAnswer = (connection: Connection): void => {
    pipelines.resume(connection)
    if (connection.requests > 0) return
    connection.whenAnswered?.()
    if (isDraining) leave(connection)
  }
  const endsWith = (connection: Connection): void => {
    connection.isEnding = true
    pipelines.drop(connection)
  }
  // For Node, a connection whose first request is still to come is idle too: what was accepted is answered. Sessions of HTTP/2
  // are closed by their server.
  server.closeIdleConnections = () =>
    open.close(({ session, requestsCame, requests }) => !session && requestsCame > 0 && requests === 0)

  return {
    /** The connection of the first request on it. */
    register: (request: IncomingMessage): Connection => {
      const connection = known(carrierOf(request), request.socket)
      if (isHttp2(request)) connection.session ??= request.stream.session as ServerHttp2Session | undefined
      return connection
    },
    /** The connection of a socket on which no request may have come yet. */
    ofSocket: (socket: Socket): Connection => known(socket, socket),
    /** The accepted socket below one whose TLS handshake has failed. */
    below: (handshaking: Socket): Socket | undefined => open.below(handshaking)?.socket,
    /** Whether a request has to wait for those before it on its connection; `begin` is called when it is its turn. */
    waits: (
      connection: Connection,
      request: IncomingMessage,
      response: ServerResponse,
      begin: Waiting['begin'],
    ): boolean => {
      if (!pipelines.waits(connection, request, response, begin)) return false
      connection.afterAnswer = afterAnswer
      return true
    },
    /** A request came with a good key for the first time: the connection is not counted any more. */
    authenticated: (connection: Connection): void => {
      pipelines.authenticated(connection)
      open.authenticated(connection)
    },
    /** A request was refused without a good key. Returns false where the connection must end with the response. */
    refused: (connection: Connection): boolean => {
      if (connection.isAuthenticated) return true
      connection.refusals += 1
      if (connection.refusals < maxRefusals) return true
      if (connection.refusals === maxRefusals) observer.connectionClosed('refusals')
      connection.isFlooding = true
      endsWith(connection)
      connection.session?.close()
      return false
    },
    /** Drops the requests after the one that is being answered. */
    endsWith,
    /**
     * Takes no further request from a connection, and calls back once all that came are answered, with whether the last of
     * them had come whole. Only the first call for a connection counts.
     */
    end: (connection: Connection, whenAnswered: (lastIsWhole: boolean) => void): void => {
      if (connection.whenAnswered) return
      const lastIsWhole = connection.unreadBody?.complete ?? true
      connection.whenAnswered = () => whenAnswered(lastIsWhole)
      connection.afterAnswer = afterAnswer
      if (connection.requests === 0) connection.whenAnswered()
    },
    /** Asks clients of HTTP/2 to open their next connection elsewhere, as soon as nothing is under way on this one. */
    drain: (): void => {
      isDraining = true
      for (const connection of open.all) {
        connection.afterAnswer = afterAnswer
        leave(connection)
      }
    },
    /** Drops every connection on which no request is being answered. */
    closeSilent: (): void => open.close(({ requests }) => requests === 0),
    /** Drops every connection, whatever is under way on it. */
    closeAll: (): void => open.close(() => true),
    count: (): ConnectionCount => ({ open: open.all.length, unauthenticated: open.unauthenticated }),
    apply: (next: ConnectionLimits): void => {
      open.maxPerAddress = next.maxConnectionsPerAddress
      server.maxConnections = next.maxConnections
    },
  }
}

const leave = ({ session, requests }: Connection): void => {
  if (session && requests === 0 && !session.destroyed && !session.closed) session.goaway(0, noStreamYet)
}
