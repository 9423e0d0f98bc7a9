// The open connections of the API: counts their requests, bounds what each may queue, and closes some when there are too many
// or a client does not read its answers. unauthenticated.ts chooses among those without a good key, paced-reading.ts and
// http2.ts read them. Longer than 300 lines, because reading, counting and closing change the same connection.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ignoreUpgrades } from '../../ignored-upgrade.ts'
import { emptyKeyMemo } from '../../metering/authentication.ts'
import { boundBody } from '../../unread-body.ts'
import { type Connection, depthOf, peerOf, type Tracked } from './connection.ts'
import { type Http2, type Http2Connection, streamsFor } from './http2.ts'
import { readPaced } from './paced-reading.ts'
import { createTurns, type Priority } from './turns.ts'
import { createUnauthenticated } from './unauthenticated.ts'

export type ConnectionLimits = {
  /** Open connections. */
  readonly maxConnections: number
  /** Of those, the ones without a good key. */
  readonly maxUnauthenticated: number
  /** Requests on one connection that are not answered yet; beyond it the connection is not read. */
  readonly maxPipelined: number
  /** Requests over all connections that wait behind another one on theirs. */
  readonly maxQueuedRequests: number
  /** How long a client may read nothing of a response. */
  readonly writeTimeoutMs: number
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
  /** How long a connection may be idle between two requests. */
  readonly keepAliveTimeoutMs: number
}

/**
 * Why a connection was closed: too many in all (`connections`), too many without a good key (`unauthenticated`), too many
 * requests queued (`pipelining`), a response that the client does not read (`write_timeout`), or a body that the API does not
 * read (`body`).
 */
type ClosingReason = 'connections' | 'unauthenticated' | 'pipelining' | 'write_timeout' | 'body'

export type ConnectionObserver = { connectionClosed(reason: ClosingReason): void }

export type ConnectionCount = {
  readonly open: number
  /** Of those, the ones that have not shown a good key. */
  readonly unauthenticated: number
  /** Requests that wait behind another one on their connection. */
  readonly queuedRequests: number
}

export type Connections = {
  /** The connection of a socket on which a request came. */
  of(socket: Socket): Connection
  /** The accepted socket below one whose TLS handshake is not done; undefined for others. */
  below(handshaking: Socket): Socket | undefined
  requestCame(connection: Connection, request: IncomingMessage): void
  /** The same request may have a body, which the API does not read. Called before anything is written. */
  bodyMayCome(connection: Connection, request: IncomingMessage, response: ServerResponse): void
  /** A request came with a good key. */
  authenticated(connection: Connection): void
  /**
   * Resolves when it is the turn of a request whose connection has more of them; undefined where it need not wait. Over HTTP/2
   * none does.
   */
  turnOf(connection: Connection): Promise<void> | undefined
  /** A request was refused without a good key. Returns false where the connection must end with the response. */
  refused(connection: Connection): boolean
  /** A request is answered, or its client is gone. */
  requestEnded(connection: Connection, request: IncomingMessage): void
  /**
   * Takes no further request from a connection, and calls back once all that came are answered, with whether the last of
   * them had come whole. Only the first call for a connection counts.
   */
  end(connection: Connection, whenAnswered: (lastIsWhole: boolean) => void): void
  /** Drops every connection on which no request is being answered. */
  closeSilent(): void
  count(): ConnectionCount
  /** Sets new limits; open connections beyond them are closed when the next connection or request comes. */
  apply(limits: ConnectionLimits): void
}

// On the socket itself, because it is looked up with every request.
const mark = Symbol('connection')
type Marked = Socket & { [mark]?: Tracked }

const sweepEveryMs = 1_000
const tickEveryMs = 250
// Between two ticks the event loop turns so often at least, however busy the machine: enough for a TLS handshake and the request
// behind it to be read, where the client does its part at once.
const turnsPerTick = 6
// A client that ends its side waits for its answers, or is gone; Node by itself takes it to be gone at once.
const answerAfterEndMs = 1_000
// After so many refusals without a good key the connection ends.
const maxRefusals = 1_000
// The share of each turn of the event loop for connections that are read in chunks. A request takes half a dozen turns, so in a
// flood it takes so many times as long.
const pacedMsPerTurn = 0.25
// Requests that a suspect may have at once; a client without a good key may have one.
const suspectPipelined = 4
// With more requests over HTTP/2 waiting before a good key came, a connection is suspect.
const greedyWaiting = 32
// With more unread bytes than any head may have before a good key came, a connection is suspect.
const greedyBytes = 32 * 1024
// Bytes that may arrive over HTTP/2 for each request, its body included, and beside all requests.
const bytesPerRequest = 32 * 1024
const freeBytes = 256 * 1024
// Closes many idle connections at once, so that it seldom searches for them.
const shareClosedAtOnce = 1 / 64

/** Tracks the server's connections, and makes Node close those that are really idle when the server closes. */
export const trackConnections = (
  server: Server,
  limits: ConnectionLimits,
  observer: ConnectionObserver,
  http2?: Http2,
): Connections => {
  let { maxConnections, maxUnauthenticated, maxPipelined, maxQueuedRequests } = limits
  let { writeTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = limits
  const open = new Set<Tracked>()
  const turns = createTurns(pacedMsPerTurn)
  const isTls = 'setSecureContext' in server
  const unauthenticated = createUnauthenticated({
    max: () => maxUnauthenticated,
    admit: connection => (isTls ? read(connection) : turns.queue(connection.task)),
    close: connection => drop(connection, 'unauthenticated'),
    queue: turns.queue,
  })
  let queued = 0
  let tracked = 0

  const forget = (connection: Tracked): void => {
    if (!open.delete(connection)) return
    queued -= Math.max(0, (connection.requests ?? 0) - 1) + (connection.http2?.waiting ?? 0)
    // Requests that came are taken to their end.
    if (connection.held.length === 0) turns.cancel(connection.task)
    unauthenticated.remove(connection)
  }
  const drop = (connection: Tracked | undefined, reason: ClosingReason): void => {
    if (!connection) return
    observer.connectionClosed(reason)
    forget(connection)
    if (!connection.http2) freeReadAhead(connection.http)
    connection.http.destroy()
    connection.socket.destroy()
  }

  const track = (socket: Marked): Tracked => {
    const now = performance.now()
    tracked += 1
    const connection: Tracked = {
      number: tracked,
      requestsCame: 0,
      peer: undefined,
      socket,
      http: socket,
      isBegun: false,
      reading: undefined,
      http2: undefined,
      task: {
        priority: () => priorityOf(connection),
        run: () => goOn(connection),
      },
      held: [],
      begunAfter: 0,
      usedAt: now,
      requests: undefined,
      keyMemo: emptyKeyMemo(),
      isAuthenticated: false,
      refusals: 0,
      isSuspect: false,
      last: undefined,
      whenAnswered: undefined,
      endedAt: Number.POSITIVE_INFINITY,
      taken: 0,
      takenAt: now,
    }
    open.add(connection)
    unauthenticated.add(connection)
    socket[mark] = connection
    socket.once('close', () => forget(connection))
    makeRoom(connection)
    return connection
  }
  const makeRoom = (newcomer: Tracked): void => {
    if (open.size > maxConnections) closeIdle(newcomer)
    unauthenticated.boundWaiting()
  }
  // Idle connections make room for new ones; where all are busy the new one goes.
  const closeIdle = (newcomer: Tracked): void => {
    const idle = [...open].filter(connection => connection !== newcomer && !connection.requests)
    const wanted = Math.max(open.size - maxConnections, Math.floor(maxConnections * shareClosedAtOnce))
    idle.sort((one, other) => one.usedAt - other.usedAt)
    for (const connection of idle.slice(0, wanted)) drop(connection, 'connections')
    if (open.size > maxConnections) drop(newcomer, 'connections')
  }

  // Connections that are being read come before new ones, and suspects come last. One that is still paced after its good key
  // has sent several requests at once.
  const priorityOf = ({ isAuthenticated, isSuspect, isBegun }: Tracked): Priority => {
    if (isAuthenticated) return 'more'
    return isSuspect ? 'low' : isBegun ? 'known' : 'new'
  }
  const goOn = (connection: Tracked): void => {
    const { held } = connection
    held.shift()?.()
    if (held.length > 0) turns.queue(connection.task)
    else read(connection)
  }
  const read = (connection: Tracked): void => {
    if (connection.whenAnswered || !open.has(connection)) return
    if (!connection.isBegun && unauthenticated.makeRoom() && !connection.isBegun)
      if (isTls) beginHandshake(connection)
      else begin(connection)
    const { reading } = connection
    if (!reading) return
    reading.resume()
    endPacing(connection)
  }
  /**
   * A connection that showed a good key, and over HTTP/1.1 waits for no response, is read by Node itself. True if that is so
   * from now on.
   */
  const endPacing = (connection: Tracked): boolean => {
    const { reading, isAuthenticated, requests, whenAnswered } = connection
    if (!reading || !isAuthenticated || whenAnswered) return false
    if ((requests && !connection.http2) || !reading.end()) return false
    connection.reading = undefined
    return true
  }
  const hasUnread = ({ reading, http, http2 }: Tracked): boolean =>
    reading !== undefined && (http2 ? http2.waiting > 0 : http.readableLength > 0)
  const isFull = ({ requests = 0, isAuthenticated, isSuspect, http2 }: Tracked): boolean => {
    const max = http2 ? streamsFor(maxPipelined) : maxPipelined
    return requests >= Math.min(max, isAuthenticated ? max : isSuspect ? suspectPipelined : 1)
  }
  const begin = (connection: Tracked): void => {
    unauthenticated.begin(connection)
    if (http2 && (connection.http as TLSSocket).alpnProtocol === 'h2') {
      beginHttp2(connection, http2)
      return
    }
    for (const listener of httpListeners) listener.call(server, connection.http)
    pace(connection)
    connection.http.once('end', () => {
      connection.endedAt = performance.now()
    })
  }
  const mayReadOn = (connection: Tracked) => (): boolean =>
    !isFull(connection) && !connection.whenAnswered && turns.mayGoOn(connection.task)
  const beginHttp2 = (connection: Tracked, { open: openSession }: Http2): void => {
    const own = openSession(connection.http as TLSSocket, {
      mayRead: mayReadOn(connection),
      onReadable: () => {
        if (!open.has(connection)) return
        queued += 1
        if (!connection.isAuthenticated && own.waiting > greedyWaiting) unauthenticated.suspect(connection)
        if (queued > maxQueuedRequests) closeDeepest()
        read(connection)
      },
      onTaken: () => {
        if (open.has(connection)) queued -= 1
      },
      onResume: () => {},
    })
    connection.http2 = own
    connection.reading = own
  }
  const pace = (connection: Tracked): void => {
    connection.reading = readPaced(connection.http, {
      mayRead: mayReadOn(connection),
      onReadable: () => {
        if (!connection.isAuthenticated && connection.http.readableLength > greedyBytes)
          unauthenticated.suspect(connection)
        read(connection)
      },
      onResume: () => turns.queue(connection.task),
    })
  }

  const closeDeepest = (): void => {
    let deepest: Tracked | undefined
    for (const connection of open) if (depthOf(connection) > depthOf(deepest)) deepest = connection
    drop(deepest, 'pipelining')
  }
  const sweep = (): void => {
    const now = performance.now()
    for (const connection of open) {
      const { http2: own, http } = connection
      // Nearly all connections owe nothing, and `bytesWritten` of thousands takes milliseconds.
      const owed = own
        ? own.taken()
        : http.writableLength === 0
          ? undefined
          : http.bytesWritten - http.writableLength
      if (own) closeIdleSession(connection, own, now)
      closeFlooding(connection)
      if (owed === undefined || owed !== connection.taken) {
        connection.taken = owed ?? 0
        connection.takenAt = now
      } else if (now - connection.takenAt >= writeTimeoutMs) drop(connection, 'write_timeout')
      if (now - connection.endedAt >= answerAfterEndMs) connection.http.destroy()
    }
  }

  let isTickDue = false
  const tickAfter = (turnsLeft: number): void => {
    if (turnsLeft > 0) {
      setImmediate(tickAfter, turnsLeft - 1)
      return
    }
    isTickDue = false
    if (!isClosed) tick()
  }
  const tick = (): void => {
    for (const connection of unauthenticated.begun()) closeFlooding(connection)
    unauthenticated.tick()
  }
  // Over HTTP/2 a client can send bytes that belong to no request, such as the rest of a body whose stream has ended, and
  // Node reads them.
  const closeFlooding = (connection: Tracked): void => {
    const { http2: own, requestsCame, http } = connection
    if (own && http.bytesRead > freeBytes + (requestsCame + own.waiting) * bytesPerRequest)
      drop(connection, 'body')
  }

  // As Node does with connections of HTTP/1.1.
  const closeIdleSession = (
    { requests, requestsCame, usedAt, http }: Tracked,
    own: Http2Connection,
    now: number,
  ) => {
    if (requests || own.waiting > 0) return
    if (now - usedAt < (requestsCame === 0 ? requestTimeoutMs : keepAliveTimeoutMs)) return
    // Where the client does not close its side either, the socket is destroyed a sweep later.
    if (own.isClosing) http.destroy()
    else own.close()
  }

  const closeThose = (mayGo: (requests: number | undefined, isHttp2: boolean) => boolean): void => {
    for (const { socket, requests, http2 } of open) if (mayGo(requests, http2 !== undefined)) socket.destroy()
  }
  // Options that Node's HTTP does not pass to its server.
  Object.assign(server, { httpAllowHalfOpen: true, pauseOnConnect: true })
  server.closeIdleConnections = () => {
    for (const connection of open) connection.http2?.close()
    closeThose((requests, isHttp2) => requests === 0 && !isHttp2)
  }
  const startSweeping = () => setInterval(sweep, Math.min(sweepEveryMs, writeTimeoutMs)).unref()
  let sweeping = startSweeping()
  let isClosed = false
  const ticking = setInterval(() => {
    if (isTickDue) return
    isTickDue = true
    tickAfter(turnsPerTick)
  }, tickEveryMs).unref()
  server.once('close', () => {
    isClosed = true
    clearInterval(sweeping)
    clearInterval(ticking)
  })

  // Under TLS the socket that connects and the socket that carries requests are two objects of one connection.
  const handshaking = new Map<string, Tracked>()
  // A connection is passed to Node's TLS or HTTP when its turn comes, so that waiting connections cost little in a flood.
  // Under TLS, Node's HTTP gets the connections that do not speak HTTP/2.
  const takeListeners = (event: string) => {
    const listeners = server.listeners(event)
    server.removeAllListeners(event)
    return listeners
  }
  const tlsListeners = isTls ? takeListeners('connection') : []
  const httpListeners = takeListeners(isTls ? 'secureConnection' : 'connection')
  server.on('connection', (socket: Marked) => {
    // Without a listener, a reset would end the process.
    socket.on('error', () => {})
    const connection = track(socket)
    if (isTls || turns.mayGoOn(connection.task)) read(connection)
  })
  const beginHandshake = (connection: Tracked): void => {
    const { socket } = connection
    unauthenticated.begin(connection)
    const peer = peerOf(socket)
    handshaking.set(peer, connection)
    socket.once('close', () => {
      if (handshaking.get(peer) === connection) handshaking.delete(peer)
    })
    for (const listener of tlsListeners) listener.call(server, socket)
  }
  server.on('secureConnection', (http: Marked) => {
    const peer = peerOf(http)
    const connection = handshaking.get(peer)
    if (!connection) return
    handshaking.delete(peer)
    http[mark] = connection
    connection.http = http
    begin(connection)
  })

  ignoreUpgrades(server, (socket: Marked) => {
    const connection = socket[mark]
    if (!connection) return
    const again = () => {
      connection.whenAnswered = undefined
      if (!socket.writable) {
        connection.reading = undefined
        return
      }
      for (const listener of httpListeners) listener.call(server, socket)
      // Where it was paced it stays so: Node lets a socket flow that loses its listener for `readable` right after a request, even
      // to nobody.
      if (connection.reading) connection.reading.readForNextParser()
      else pace(connection)
      turns.queue(connection.task)
    }
    if (connection.requests) connection.whenAnswered ??= again
    else if (!connection.whenAnswered) again()
  })

  return {
    // A connection that did not come over the network begins at once.
    of: (socket: Marked) => {
      const known = socket[mark]
      if (known) return known
      const connection = track(socket)
      unauthenticated.begin(connection)
      return connection
    },
    below: socket => handshaking.get(peerOf(socket))?.socket,
    requestCame: (given, request) => {
      const connection = given as Tracked
      const requests = (connection.requests ?? 0) + 1
      connection.requests = requests
      connection.requestsCame += 1
      connection.last = request
      if (requests === 1 || !open.has(connection)) return
      queued += 1
      // More requests than allowed came at once; from now on they come one by one.
      if (requests > maxPipelined && !connection.reading && !connection.http2) pace(connection)
      if (queued > maxQueuedRequests) closeDeepest()
    },
    bodyMayCome: (given, request, response) => {
      const connection = given as Tracked
      boundBody(request, response, () => {
        observer.connectionClosed('body')
        if (!connection.reading) pace(connection)
        connection.whenAnswered ??= () => {}
      })
    },
    authenticated: given => {
      const connection = given as Tracked
      if (connection.isAuthenticated) return
      connection.isAuthenticated = true
      unauthenticated.remove(connection)
      // It may send more now.
      if (hasUnread(connection)) turns.queue(connection.task)
    },
    turnOf: given => {
      const connection = given as Tracked
      if (connection.http2 || (connection.requests === 1 && !hasUnread(connection))) return undefined
      return new Promise(resolve => {
        connection.held.push(resolve)
        turns.queue(connection.task)
      })
    },
    refused: given => {
      const connection = given as Tracked
      if (connection.isAuthenticated) return true
      connection.refusals += 1
      if (open.has(connection)) unauthenticated.suspect(connection)
      if (connection.refusals < maxRefusals) return true
      connection.whenAnswered ??= () => connection.http2?.refuse()
      return false
    },
    requestEnded: (given, request) => {
      const connection = given as Tracked
      const requests = (connection.requests ?? 1) - 1
      connection.requests = requests
      connection.usedAt = performance.now()
      if (connection.last === request && request.complete) connection.last = undefined
      if (requests === 0) connection.whenAnswered?.()
      if (!open.has(connection)) return
      if (requests > 0) queued -= 1
      // Without waiting for a turn: a client that sends its next request at once would stay paced otherwise.
      const isEnding = connection.http.writableEnded
      if (!isEnding && !endPacing(connection) && hasUnread(connection)) turns.queue(connection.task)
    },
    end: (given, whenAnswered) => {
      const connection = given as Tracked
      if (connection.whenAnswered) return
      const lastIsWhole = connection.last?.complete ?? true
      connection.whenAnswered = () => whenAnswered(lastIsWhole)
      if (!connection.requests) connection.whenAnswered()
    },
    closeSilent: () => closeThose(requests => !requests),
    count: () => ({
      open: open.size,
      unauthenticated: unauthenticated.count(),
      queuedRequests: queued,
    }),
    apply: next => {
      ;({ maxConnections, maxUnauthenticated, maxPipelined, maxQueuedRequests } = next)
      ;({ writeTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = next)
      http2?.apply(maxPipelined)
      clearInterval(sweeping)
      // Also before it listens, and while it waits for the last connections to end.
      if (!isClosed) sweeping = startSweeping()
    },
  }
}

// Frees the memory of unread bytes at once: a flood is faster than the collector. So large a chunk is outside Node's pool of
// small buffers, and nothing else refers to it.
const freeReadAhead = (socket: Socket): void => {
  const chunk: Buffer | null = socket.removeAllListeners('data').read()
  if (chunk && chunk.length > greedyBytes && chunk.buffer instanceof ArrayBuffer) chunk.buffer.transfer(0)
}
