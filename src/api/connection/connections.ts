// The open connections of the API: how many one address may have without a good key, when a refused client has to go, how many
// requests may wait on one, and which are idle when the gateway stops. Time, size and the number of all connections are bounded
// by Node itself, in server.ts.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { emptyKeyMemo } from '../../keys/authentication.ts'
import type { ClosingReason } from '../../telemetry/label-values.ts'
import { AddressCounts } from './address-counts.ts'
import { networkOf } from './client-address.ts'
import {
  type Carrier,
  type Connection,
  carrierOf,
  isHttp2,
  mark,
  notOpen,
  type Waiting,
} from './connection.ts'
import { createPipelines } from './pipeline.ts'

export type ConnectionLimits = {
  /** Open connections. */
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

// Whoever sends so many requests without a good key will hardly send one with it.
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
  isTrusted: (address: string | undefined) => boolean,
  observer: ConnectionObserver,
) => {
  const counts = new AddressCounts(limits.maxConnectionsPerAddress)
  const open = new OpenConnections()
  const peers = new TlsPeers()
  const isTls = 'setSecureContext' in server
  const pipelines = createPipelines(() => observer.connectionClosed('pipeline'))
  let tracked = 0
  let isDraining = false
  server.maxConnections = limits.maxConnections
  server.on('drop', () => observer.connectionClosed('connections'))

  const track = (socket: Socket, address: string | undefined): Connection => {
    tracked += 1
    return newConnection(tracked, socket, address, isDraining ? afterAnswer : undefined)
  }
  // Before Node's own listener, so that a connection too many costs no TLS handshake.
  server.prependListener('connection', (socket: Socket & Carrier) => {
    const { remoteAddress } = socket
    const address =
      remoteAddress === undefined || isTrusted(remoteAddress) ? undefined : networkOf(remoteAddress)
    if (address !== undefined && !counts.add(address)) {
      observer.connectionClosed('address', remoteAddress)
      socket.destroy()
      return
    }
    const connection = track(socket, address)
    socket[mark] = connection
    open.add(connection)
    const forgetPeer = isTls ? peers.add(connection) : undefined
    socket.once('close', () => {
      pipelines.drop(connection)
      open.remove(connection)
      counts.closed(connection)
      forgetPeer?.()
    })
  })

  const known = (carrier: Carrier, socket: Socket): Connection => {
    // A connection that did not come over the network is not counted.
    carrier[mark] ??= peers.of(socket) ?? track(socket, undefined)
    return carrier[mark]
  }
  const afterAnswer = (connection: Connection): void => {
    pipelines.goOn(connection)
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
    below: (handshaking: Socket): Socket | undefined => peers.of(handshaking)?.socket,
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
      counts.release(connection)
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
    /** Takes none of the requests behind the one that is being answered. */
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
    count: (): ConnectionCount => ({ open: open.all.length, unauthenticated: open.unauthenticated }),
    /** Sets new limits for connections that come from now on. */
    apply: (next: ConnectionLimits): void => {
      counts.max = next.maxConnectionsPerAddress
      server.maxConnections = next.maxConnections
    },
  }
}

const newConnection = (
  number: number,
  socket: Socket,
  address: string | undefined,
  afterAnswer: Connection['afterAnswer'],
): Connection => ({
  number,
  place: notOpen,
  socket,
  session: undefined,
  peer: undefined,
  keyMemo: emptyKeyMemo(),
  address,
  isAuthenticated: false,
  isEnding: false,
  requestsCame: 0,
  requests: 0,
  lists: 0,
  waiting: undefined,
  refusals: 0,
  isFlooding: false,
  unreadBody: undefined,
  paused: undefined,
  whenAnswered: undefined,
  afterAnswer,
})

const leave = ({ session, requests }: Connection): void => {
  if (session && requests === 0 && !session.destroyed && !session.closed) session.goaway(0, noStreamYet)
}

/** All that are open. No Set: the tables that it has outgrown keep what was in them until old objects are collected. */
class OpenConnections {
  readonly all: Connection[] = []
  /** How many have not shown a good key. */
  unauthenticated = 0

  add(connection: Connection): void {
    connection.place = this.all.length
    this.all.push(connection)
    this.unauthenticated += 1
  }

  remove(connection: Connection): void {
    const last = this.all.pop()
    if (last && last !== connection) {
      this.all[connection.place] = last
      last.place = connection.place
    }
    connection.place = notOpen
    if (!connection.isAuthenticated) this.unauthenticated -= 1
  }

  authenticated(connection: Connection): void {
    connection.isAuthenticated = true
    if (connection.place !== notOpen) this.unauthenticated -= 1
  }

  close(mayGo: (connection: Connection) => boolean): void {
    for (const connection of this.all) if (mayGo(connection)) connection.socket.destroy()
  }
}

/** Under TLS the socket that is accepted and the one that carries requests are two objects with the same other end. */
class TlsPeers {
  // The values let their connection go, because the tables that the Map has outgrown keep what was in them.
  readonly #byPeer = new Map<string, { connection: Connection | undefined }>()

  /** Returns what forgets the connection. */
  add(connection: Connection): () => void {
    const peer = peerOf(connection.socket)
    const known: { connection: Connection | undefined } = { connection }
    this.#byPeer.set(peer, known)
    return () => {
      known.connection = undefined
      if (this.#byPeer.get(peer) === known) this.#byPeer.delete(peer)
    }
  }

  of(socket: Socket): Connection | undefined {
    return this.#byPeer.get(peerOf(socket))?.connection
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
