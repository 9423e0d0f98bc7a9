// The open connections of the API: how many one address may have without a good key, when a refused client has to go, how many
// requests may wait on one, and which are idle when the gateway stops. Time, size and the number of all connections are bounded
// by Node itself, in server.ts.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { endAtLast } from '../../common/last-request.ts'
import { emptyKeyMemo } from '../../keys/authentication.ts'
import type { ClosingReason } from '../../telemetry/label-values.ts'
import { networkOf } from './client-address.ts'
import { type Carrier, type Connection, carrierOf, isHttp2, mark, notOpen } from './connection.ts'
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
// So long its connection counts on for its address: such a client would be back at once, and each read of it may hold thousands of
// requests.
const refusedForMs = 60_000
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
  let { maxConnectionsPerAddress } = limits
  server.maxConnections = limits.maxConnections
  server.on('drop', () => observer.connectionClosed('connections'))
  // No Set, and in the Map below what lets its connection go: the tables that these have outgrown keep what was in them until old
  // objects are collected.
  const open: Connection[] = []
  const add = (connection: Connection): void => {
    connection.place = open.length
    open.push(connection)
  }
  const remove = (connection: Connection): void => {
    const last = open.pop()
    if (last && last !== connection) {
      open[connection.place] = last
      last.place = connection.place
    }
    connection.place = notOpen
  }
  const counts = new Map<string, number>()
  const isTls = 'setSecureContext' in server
  // Under TLS the socket that is accepted and the one that carries requests are two objects with the same other end.
  const byPeer = new Map<string, { connection: Connection | undefined }>()
  let tracked = 0
  let unauthenticated = 0
  let isDraining = false

  const track = (socket: Socket, address: string | undefined): Connection => {
    tracked += 1
    return {
      number: tracked,
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
      withBody: undefined,
      paused: undefined,
      whenAnswered: undefined,
      afterAnswer: isDraining ? afterAnswer : undefined,
    }
  }
  const uncount = (connection: Connection): void => {
    const { address } = connection
    if (address === undefined) return
    connection.address = undefined
    release(address)
  }
  const release = (address: string): void => {
    const left = (counts.get(address) ?? 1) - 1
    if (left === 0) counts.delete(address)
    else counts.set(address, left)
  }

  // Before Node's own listener, so that a connection too many costs no TLS handshake.
  server.prependListener('connection', (socket: Socket & Carrier) => {
    const { remoteAddress } = socket
    const address =
      remoteAddress === undefined || isTrusted(remoteAddress) ? undefined : networkOf(remoteAddress)
    if (address !== undefined) {
      const before = counts.get(address) ?? 0
      if (before >= maxConnectionsPerAddress) {
        observer.connectionClosed('address', remoteAddress)
        socket.destroy()
        return
      }
      counts.set(address, before + 1)
    }
    const connection = track(socket, address)
    socket[mark] = connection
    add(connection)
    unauthenticated += 1
    const peer = isTls ? peerOf(socket) : ''
    const ofPeer: { connection: Connection | undefined } = { connection }
    if (isTls) byPeer.set(peer, ofPeer)
    socket.once('close', () => {
      pipelines.drop(connection)
      remove(connection)
      if (!connection.isAuthenticated) unauthenticated -= 1
      if (connection.refusals < maxRefusals || connection.address === undefined) uncount(connection)
      // The address alone: the connection holds all requests of its last read.
      else setTimeout(release, refusedForMs, connection.address).unref()
      ofPeer.connection = undefined
      if (byPeer.get(peer) === ofPeer) byPeer.delete(peer)
    })
  })

  const known = (carrier: Carrier, socket: Socket): Connection => {
    // A connection that did not come over the network is not counted.
    carrier[mark] ??= byPeer.get(peerOf(socket))?.connection ?? track(socket, undefined)
    return carrier[mark]
  }
  const afterAnswer = (connection: Connection): void => {
    pipelines.next(connection)
    const { requests, paused, isEnding } = connection
    if (paused && !isEnding && pipelines.hasRoom(connection)) {
      connection.paused = undefined
      paused.off('resume', paused.pause)
      paused.resume()
    }
    if (requests > 0) return
    connection.whenAnswered?.()
    if (isDraining) leave(connection)
  }
  const leave = ({ session, requests }: Connection): void => {
    if (session && requests === 0 && !session.destroyed && !session.closed) session.goaway(0, noStreamYet)
  }

  const pause = (connection: Connection, { socket }: IncomingMessage): void => {
    if (connection.paused) return
    connection.paused = socket
    // Behind each request that it still had, Node resumes.
    socket.on('resume', socket.pause)
    socket.pause()
  }
  const endsWith = (connection: Connection): void => {
    connection.isEnding = true
    pipelines.drop(connection)
  }
  const pipelines = createPipelines({
    pause,
    end: (connection, request, now) => {
      observer.connectionClosed('pipeline')
      connection.isEnding = true
      endAtLast(request.socket)
      if (!now) {
        pause(connection, request)
        return
      }
      // It counts on for its address.
      connection.refusals = maxRefusals
      request.socket.destroy()
    },
  })

  const closeThose = (mayGo: (connection: Connection) => boolean): void => {
    for (const connection of open) if (mayGo(connection)) connection.socket.destroy()
  }
  // For Node, a connection whose first request is still to come is idle too: what was accepted is answered. Sessions of HTTP/2
  // are closed by their server.
  server.closeIdleConnections = () =>
    closeThose(({ session, requestsCame, requests }) => !session && requestsCame > 0 && requests === 0)

  return {
    /** The connection of the first request on it. */
    ofFirst: (request: IncomingMessage): Connection => {
      const connection = known(carrierOf(request), request.socket)
      if (isHttp2(request)) connection.session ??= request.stream.session as ServerHttp2Session | undefined
      return connection
    },
    /** The connection of a socket on which no request may have come yet. */
    ofSocket: (socket: Socket): Connection => known(socket, socket),
    /** The accepted socket below one whose TLS handshake has failed. */
    below: (handshaking: Socket): Socket | undefined => byPeer.get(peerOf(handshaking))?.connection?.socket,
    /** Whether a request has to wait for those before it on its connection; `begin` is called when it is its turn. */
    waits: (
      connection: Connection,
      request: IncomingMessage,
      response: ServerResponse,
      begin: (request: IncomingMessage, response: ServerResponse) => void,
    ): boolean => {
      if (!pipelines.waits(connection, request, response, begin)) return false
      connection.afterAnswer = afterAnswer
      return true
    },
    /** A request came with a good key for the first time: the connection is not counted any more. */
    authenticated: (connection: Connection): void => {
      pipelines.authenticated(connection)
      connection.isAuthenticated = true
      uncount(connection)
      if (connection.place !== notOpen) unauthenticated -= 1
    },
    /** A request was refused without a good key. Returns false where the connection must end with the response. */
    refused: (connection: Connection): boolean => {
      if (connection.isAuthenticated) return true
      connection.refusals += 1
      if (connection.refusals < maxRefusals) return true
      if (connection.refusals === maxRefusals) observer.connectionClosed('refusals')
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
      const lastIsWhole = connection.withBody?.complete ?? true
      connection.whenAnswered = () => whenAnswered(lastIsWhole)
      connection.afterAnswer = afterAnswer
      if (connection.requests === 0) connection.whenAnswered()
    },
    /** Asks clients of HTTP/2 to open their next connection elsewhere, as soon as nothing is under way on this one. */
    drain: (): void => {
      isDraining = true
      for (const connection of open) {
        connection.afterAnswer = afterAnswer
        leave(connection)
      }
    },
    /** Drops every connection on which no request is being answered. */
    closeSilent: (): void => closeThose(({ requests }) => requests === 0),
    count: (): ConnectionCount => ({ open: open.length, unauthenticated }),
    /** Sets new limits for connections that come from now on. */
    apply: (next: ConnectionLimits): void => {
      ;({ maxConnectionsPerAddress } = next)
      server.maxConnections = next.maxConnections
    },
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
