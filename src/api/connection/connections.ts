// The open connections of the API: how many one address may have without a good key, when a refused client has to go, how many
// requests may wait on one, and which are idle when the gateway stops. Time, size and the number of all connections are bounded
// by Node itself, in server.ts.

import type { IncomingMessage, Server } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { emptyKeyMemo, type KeyMemo } from '../../keys/authentication.ts'
import type { ClosingReason } from '../../telemetry/label-values.ts'
import { networkOf, type Peer } from './client-address.ts'
import { isHttp2 } from './http2.ts'

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

/** The part of a connection that the API reads. */
export type Connection = {
  /** Of the connections since the start, in order. */
  readonly number: number
  /** How many requests have come on it. */
  requestsCame: number
  /** The other end, once a request has come. */
  peer: Peer | undefined
  /** The key that came with the last request. */
  readonly keyMemo: KeyMemo
}

type Tracked = Connection & {
  /** The socket that was accepted; that of a TLS session is another one. */
  readonly socket: Socket
  /** Undefined where HTTP/1.1 is spoken. */
  session: ServerHttp2Session | undefined
  /** What it is counted under; undefined where it is not, or not any more. */
  address: string | undefined
  isAuthenticated: boolean
  isEnding: boolean
  /** Requests that are not answered yet. */
  requests: number
  /** What is not read from while too many requests wait. */
  paused: Socket | undefined
  /** Requests that were answered without a good key. */
  refusals: number
  /** The last request that has a body. */
  withBody: IncomingMessage | undefined
  /** Set once no further request is taken. */
  whenAnswered: (() => void) | undefined
}

export type Connections = {
  /** The connection of a request. */
  of(request: IncomingMessage): Connection
  /** The connection of a socket on which no request may have come yet. */
  ofSocket(socket: Socket): Connection
  /** The accepted socket below one whose TLS handshake has failed. */
  below(handshaking: Socket): Socket | undefined
  /** Whether it ends behind a request that came: those behind that one are not taken, nor counted for their key. */
  isEnding(connection: Connection): boolean
  /** The connection ends with the response to a request that came. */
  endsBehind(connection: Connection): void
  /** Reads no further while too many requests of a pipeline wait for their answers. */
  requestCame(connection: Connection, request: IncomingMessage): void
  /** The same request has a body, which the API does not read. */
  bodyMayCome(connection: Connection, request: IncomingMessage): void
  /** A request came with a good key: the connection is not counted any more. */
  authenticated(connection: Connection): void
  /** A request was refused without a good key. Returns false where the connection must end with the response. */
  refused(connection: Connection): boolean
  /** A request is answered, or its client is gone. */
  requestEnded(connection: Connection): void
  /**
   * Takes no further request from a connection, and calls back once all that came are answered, with whether the last of
   * them had come whole. Only the first call for a connection counts.
   */
  end(connection: Connection, whenAnswered: (lastIsWhole: boolean) => void): void
  /** Asks clients of HTTP/2 to open their next connection elsewhere, as soon as nothing is under way on this one. */
  drain(): void
  /** Drops every connection on which no request is being answered. */
  closeSilent(): void
  count(): ConnectionCount
  /** Sets new limits for connections that come from now on. */
  apply(limits: ConnectionLimits): void
}

// On the socket or the session itself, because it is looked up with every request.
const mark = Symbol('connection')
type Marked = object & { [mark]?: Tracked }

// Whoever sends so many requests without a good key will hardly send one with it.
const maxRefusals = 100
// So long its connection counts on for its address: such a client would be back at once, and each read of it may hold thousands of
// requests.
const refusedForMs = 60_000
// As many as HTTP/2 allows at once. Node itself pauses a pipeline only for answers that are written and not taken.
const maxWaiting = 100
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
): Connections => {
  let { maxConnectionsPerAddress } = limits
  server.maxConnections = limits.maxConnections
  server.on('drop', () => observer.connectionClosed('connections'))
  const open = new Set<Tracked>()
  const counts = new Map<string, number>()
  const isTls = 'setSecureContext' in server
  // Under TLS the socket that is accepted and the one that carries requests are two objects with the same other end.
  const byPeer = new Map<string, Tracked>()
  let tracked = 0
  let unauthenticated = 0
  let isDraining = false

  const track = (socket: Socket, address: string | undefined): Tracked => {
    tracked += 1
    return {
      number: tracked,
      requestsCame: 0,
      peer: undefined,
      keyMemo: emptyKeyMemo(),
      socket,
      session: undefined,
      address,
      isAuthenticated: false,
      isEnding: false,
      requests: 0,
      paused: undefined,
      refusals: 0,
      withBody: undefined,
      whenAnswered: undefined,
    }
  }
  const uncount = (connection: Tracked): void => {
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
  server.prependListener('connection', (socket: Socket & Marked) => {
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
    open.add(connection)
    unauthenticated += 1
    const peer = isTls ? peerOf(socket) : ''
    if (isTls) byPeer.set(peer, connection)
    socket.once('close', () => {
      open.delete(connection)
      if (!connection.isAuthenticated) unauthenticated -= 1
      if (connection.refusals < maxRefusals || connection.address === undefined) uncount(connection)
      // The address alone: the connection holds all requests of its last read.
      else setTimeout(release, refusedForMs, connection.address).unref()
      if (byPeer.get(peer) === connection) byPeer.delete(peer)
    })
  })

  const known = (carrier: Marked, socket: Socket): Tracked => {
    // A connection that did not come over the network is not counted.
    carrier[mark] ??= byPeer.get(peerOf(socket)) ?? track(socket, undefined)
    return carrier[mark]
  }
  const pause = (connection: Tracked, socket: Socket): void => {
    connection.paused = socket
    // Behind each request that it still had, Node resumes.
    socket.on('resume', socket.pause)
    socket.pause()
  }
  const resume = (connection: Tracked, socket: Socket): void => {
    connection.paused = undefined
    socket.off('resume', socket.pause)
    socket.resume()
  }
  const leave = ({ session, requests }: Tracked): void => {
    if (session && requests === 0 && !session.destroyed && !session.closed) session.goaway(0, noStreamYet)
  }

  const closeThose = (mayGo: (connection: Tracked) => boolean): void => {
    for (const connection of open) if (mayGo(connection)) connection.socket.destroy()
  }
  // For Node, a connection whose first request is still to come is idle too: what was accepted is answered. Sessions of HTTP/2
  // are closed by their server.
  server.closeIdleConnections = () =>
    closeThose(({ session, requestsCame, requests }) => !session && requestsCame > 0 && requests === 0)

  return {
    of: request => {
      const { socket } = request
      if (!isHttp2(request)) return (socket as Marked)[mark] ?? known(socket, socket)
      // None where the stream was given up before it came here.
      const { session } = request.stream
      const connection = known(session ?? request, socket)
      connection.session = session as ServerHttp2Session | undefined
      return connection
    },
    ofSocket: socket => known(socket, socket),
    below: handshaking => byPeer.get(peerOf(handshaking))?.socket,
    isEnding: given => (given as Tracked).isEnding,
    endsBehind: given => {
      ;(given as Tracked).isEnding = true
    },
    requestCame: (given, request) => {
      const connection = given as Tracked
      connection.requests += 1
      connection.requestsCame += 1
      const { requests, paused } = connection
      if (requests >= maxWaiting && !paused && !isHttp2(request)) pause(connection, request.socket)
    },
    bodyMayCome: (given, request) => {
      ;(given as Tracked).withBody = request
    },
    authenticated: given => {
      const connection = given as Tracked
      if (connection.isAuthenticated) return
      connection.isAuthenticated = true
      uncount(connection)
      if (open.has(connection)) unauthenticated -= 1
    },
    refused: given => {
      const connection = given as Tracked
      if (connection.isAuthenticated) return true
      connection.refusals += 1
      if (connection.refusals < maxRefusals) return true
      if (connection.refusals === maxRefusals) observer.connectionClosed('refusals')
      connection.isEnding = true
      connection.session?.close()
      return false
    },
    requestEnded: given => {
      const connection = given as Tracked
      connection.requests -= 1
      const { requests, paused } = connection
      if (paused && requests < maxWaiting) resume(connection, paused)
      if (requests > 0) return
      connection.whenAnswered?.()
      if (isDraining) leave(connection)
    },
    end: (given, whenAnswered) => {
      const connection = given as Tracked
      if (connection.whenAnswered) return
      const lastIsWhole = connection.withBody?.complete ?? true
      connection.whenAnswered = () => whenAnswered(lastIsWhole)
      if (connection.requests === 0) connection.whenAnswered()
    },
    drain: () => {
      isDraining = true
      for (const connection of open) leave(connection)
    },
    closeSilent: () => closeThose(({ requests }) => requests === 0),
    count: () => ({ open: open.size, unauthenticated }),
    apply: next => {
      ;({ maxConnectionsPerAddress } = next)
      server.maxConnections = next.maxConnections
    },
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
