// The open connections of the API: whose they are, what is owed on them, and which have to go when there are too many.
// A connection is read in small pieces until a good key came on it, so that strangers can neither queue thousands of
// requests nor hold the event loop; then it goes at full speed. How it is read is for paced-reading.ts, and for http2.ts.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ignoreUpgrades } from '../../ignored-upgrade.ts'
import { emptyKeyMemo, type KeyMemo } from '../../metering/authentication.ts'
import { boundBody } from '../../unread-body.ts'
import type { Peer } from './client-address.ts'
import { type Http2, type Http2Connection, streamsFor } from './http2.ts'
import { type PacedReading, readPaced } from './paced-reading.ts'
import { keepAliveMs } from './ready-response.ts'
import { createTurns, type Task } from './turns.ts'

export type ConnectionLimits = {
  /** Open connections. */
  readonly maxConnections: number
  /** Of those, the ones on which no good key came yet. */
  readonly maxUnauthenticated: number
  /** Requests on one connection that are not answered yet; beyond it nothing is read. */
  readonly maxPipelined: number
  /** Requests over all connections that wait behind another one on theirs. */
  readonly maxQueuedRequests: number
  /** How long a client may take nothing of an answer. */
  readonly writeTimeoutMs: number
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
}

/**
 * Why a connection was closed: too many in all (`connections`), too many without a good key (`unauthenticated`), too many
 * requests queued (`pipelining`), answers that nobody takes (`write_timeout`), or a body that nobody reads (`body`).
 */
type ClosingReason = 'connections' | 'unauthenticated' | 'pipelining' | 'write_timeout' | 'body'

export type ConnectionObserver = { connectionClosed(reason: ClosingReason): void }

export type Connection = {
  /** Of the connections since the start, in order. */
  readonly number: number
  /** How many requests have come on it. */
  requestsCame: number
  /** The other end, once a request has come. */
  peer: Peer | undefined
  /** How many requests are not answered yet; undefined until the first. */
  requests: number | undefined
  /** The key that came with the last request. */
  readonly keyMemo: KeyMemo
  /** The client has shown a good key. */
  isAuthenticated: boolean
}

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
  /** The same request may have a body, which nobody reads. Before anything is written. */
  bodyMayCome(connection: Connection, request: IncomingMessage, response: ServerResponse): void
  /** A request came with a good key. */
  authenticated(connection: Connection): void
  /** A request was refused without a good key. False where the connection is to end with the answer. */
  refused(connection: Connection): boolean
  /** A request is answered, or its client is gone. */
  requestEnded(connection: Connection, request: IncomingMessage): void
  /**
   * Takes no further request from a connection, and calls back once all that came are answered, with whether the last of
   * them had come whole. Only the first call for a connection counts.
   */
  end(connection: Connection, whenAnswered: (lastIsWhole: boolean) => void): void
  /** Drops every connection on which no request is being answered, heard from or not. */
  closeSilent(): void
  count(): ConnectionCount
  /** From now on; what is open already is closed when the next connection or request comes. */
  apply(limits: ConnectionLimits): void
}

type Tracked = Connection & {
  /** The socket that was accepted. */
  readonly socket: Socket
  /** The socket on which requests come: under TLS another one. */
  http: Socket
  /** Reading has begun. */
  isBegun: boolean
  /** Undefined while Node reads by itself. */
  reading: PacedReading | undefined
  /** Undefined where HTTP/1.1 is spoken. */
  http2: Http2Connection | undefined
  /** The connection's turn to be read. */
  readonly task: Task
  /** The number of the tick before. */
  begunAfter: number
  /** By `performance.now()`, as are all instants here. */
  usedAt: number
  /** Requests that came without a good key. */
  refusals: number
  /** One did, or more was sent than a request before a good key came. */
  isSuspect: boolean
  /** The last request, until it is answered and known to be whole. */
  last: IncomingMessage | undefined
  /** Set once no further request is taken. */
  whenAnswered: (() => void) | undefined
  /** When the client ended its side; Infinity until then. */
  endedAt: number
  /** How much the client had taken when that last changed, and when it did. */
  taken: number
  takenAt: number
}

// On the socket itself, because it is looked up with every request.
const mark = Symbol('connection')
type Marked = Socket & { [mark]?: Tracked }

const sweepEveryMs = 1_000
// A connection this young may be about to send its key. By ticks and not by time: between two of them the event loop has
// read what there was, however busy the machine.
const tickEveryMs = 250
const youngTicks = 1
// Connections that wait until there is room for one more without a good key: a wave of clients that start together. Nothing
// is read of them, so that each costs some 4 KiB.
const mostWaiting = 1_000
// A client that ends its side waits for its answers, or is gone; Node by itself takes it to be gone at once.
const answerAfterEndMs = 1_000
// A client that was refused so often and never showed a good key is sent away.
const mostRefusals = 1_000
// What connections that are read in pieces may take of each turn of the event loop.
const pacedMsPerTurn = 1
// Requests that are taken at once from a suspect; from a client that is not known yet it is a single one.
const suspectPipelined = 4
// Requests over HTTP/2 that wait before a good key came, and make a suspect.
const greedyWaiting = 32
// More than one request, and than any head may have, before a good key came: a suspect.
const greedyBytes = 32 * 1024
// What may come over HTTP/2 for each request, its body included, and beside all of them.
const bytesPerRequest = 32 * 1024
const freeBytes = 256 * 1024
// Idle connections make room in numbers, so that they are seldom searched for.
const shareClosedAtOnce = 1 / 64

/** Follows the server's connections, and replaces what Node would drop when it closes by those that are really idle. */
export const trackConnections = (
  server: Server,
  limits: ConnectionLimits,
  observer: ConnectionObserver,
  http2?: Http2,
): Connections => {
  let { maxConnections, maxUnauthenticated, maxPipelined, maxQueuedRequests } = limits
  let { writeTimeoutMs, requestTimeoutMs } = limits
  const open = new Set<Tracked>()
  // Those without a good key, the oldest first: they are not read yet, nothing speaks against them yet, or something does.
  const waiting = new Set<Tracked>()
  const unknown = new Set<Tracked>()
  const suspects = new Set<Tracked>()
  const turns = createTurns(pacedMsPerTurn)
  const isTls = 'setSecureContext' in server
  let queued = 0
  let tracked = 0
  let ticks = 0

  const forget = (connection: Tracked): void => {
    if (!open.delete(connection)) return
    queued -= Math.max(0, (connection.requests ?? 0) - 1) + (connection.http2?.waiting ?? 0)
    waiting.delete(connection)
    unknown.delete(connection)
    suspects.delete(connection)
    turns.cancel(connection.task)
    letIn()
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
        // Clients that have been let in are heard before others are, and suspects come last.
        get priority() {
          return connection.isSuspect ? 'low' : connection.isBegun ? 'known' : 'new'
        },
        run: () => read(connection),
      },
      begunAfter: ticks,
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
    waiting.add(connection)
    socket[mark] = connection
    socket.once('close', () => forget(connection))
    makeRoom(connection)
    return connection
  }
  const makeRoom = (newcomer: Tracked): void => {
    if (open.size > maxConnections) closeIdle(newcomer)
    // The newest is let in first, and the oldest would be the last.
    if (waiting.size > mostWaiting) drop(firstOf(waiting), 'unauthenticated')
  }
  const room = () => maxUnauthenticated - unknown.size - suspects.size
  /** Whether one more without a good key may be read: where there are too many, because another one goes for it. */
  const hasRoom = (): boolean => {
    if (room() <= 0) drop(leastWanted(), 'unauthenticated')
    return room() > 0
  }
  const leastWanted = () => firstOf(suspects) ?? oldestSilent()
  // What came and waits for its turn, or is being decided on, may be a good key.
  const oldestSilent = (): Tracked | undefined => {
    for (const connection of unknown) {
      if (ticks - connection.begunAfter <= youngTicks) return undefined
      const { http, requests, http2: own } = connection
      if (!requests && http.readableLength === 0 && !own?.waiting) return connection
    }
    return undefined
  }
  // The newest first, as in turns.
  const letIn = (): void => {
    if (waiting.size === 0 || room() <= 0) return
    for (const connection of [...waiting].slice(-room()).reverse())
      if (isTls) read(connection)
      else turns.queue(connection.task)
  }
  const closeStranger = (): void => {
    if (unknown.size + suspects.size > maxUnauthenticated) drop(firstOf(suspects), 'unauthenticated')
  }
  const suspect = (connection: Tracked): void => {
    if (connection.isSuspect) return
    connection.isSuspect = true
    waiting.delete(connection)
    unknown.delete(connection)
    suspects.add(connection)
    closeStranger()
  }
  // Idle connections make room for new ones; where all are busy the new one goes.
  const closeIdle = (newcomer: Tracked): void => {
    const idle = [...open].filter(connection => connection !== newcomer && !connection.requests)
    const wanted = Math.max(open.size - maxConnections, Math.floor(maxConnections * shareClosedAtOnce))
    idle.sort((one, other) => one.usedAt - other.usedAt)
    for (const connection of idle.slice(0, wanted)) drop(connection, 'connections')
    if (open.size > maxConnections) drop(newcomer, 'connections')
  }

  const read = (connection: Tracked): void => {
    if (connection.whenAnswered || !open.has(connection)) return
    if (!connection.isBegun && hasRoom() && !connection.isBegun)
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
  const isFull = ({ requests = 0, isAuthenticated, isSuspect, http2 }: Tracked): boolean => {
    const most = http2 ? streamsFor(maxPipelined) : maxPipelined
    return requests >= Math.min(most, isAuthenticated ? most : isSuspect ? suspectPipelined : 1)
  }
  const enter = (connection: Tracked): void => {
    connection.isBegun = true
    connection.begunAfter = ticks
    waiting.delete(connection)
    // In the order in which they had their chance.
    unknown.delete(connection)
    unknown.add(connection)
  }
  const begin = (connection: Tracked): void => {
    enter(connection)
    if (http2 && (connection.http as TLSSocket).alpnProtocol === 'h2') {
      beginHttp2(connection, http2)
      return
    }
    for (const give of giveToHttp) give.call(server, connection.http)
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
        if (!connection.isAuthenticated && own.waiting > greedyWaiting) suspect(connection)
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
        if (!connection.isAuthenticated && connection.http.readableLength > greedyBytes) suspect(connection)
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
      const { http2: own } = connection
      const { bytesWritten, writableLength } = connection.http
      const owed = own ? own.taken() : writableLength === 0 ? undefined : bytesWritten - writableLength
      if (own) closeResting(connection, own, now)
      closeWordy(connection)
      if (owed === undefined || owed !== connection.taken) {
        connection.taken = owed ?? 0
        connection.takenAt = now
      } else if (now - connection.takenAt >= writeTimeoutMs) drop(connection, 'write_timeout')
      if (now - connection.endedAt >= answerAfterEndMs) connection.http.destroy()
    }
  }

  const tick = (): void => {
    ticks += 1
    for (const connection of unknown) closeWordy(connection)
    for (const connection of suspects) closeWordy(connection)
    for (let i = waiting.size - room(); i > 0; i--) drop(leastWanted(), 'unauthenticated')
    letIn()
  }
  // Over HTTP/2 a client can send what belongs to no request, such as the rest of a body whose stream has ended: Node takes it.
  const closeWordy = (connection: Tracked): void => {
    const { http2: own, requestsCame, http } = connection
    if (own && http.bytesRead > freeBytes + (requestsCame + own.waiting) * bytesPerRequest)
      drop(connection, 'body')
  }

  // As Node does with connections of HTTP/1.1.
  const closeResting = (
    { requests, requestsCame, usedAt, http }: Tracked,
    own: Http2Connection,
    now: number,
  ) => {
    if (requests || own.waiting > 0) return
    if (now - usedAt < (requestsCame === 0 ? requestTimeoutMs : keepAliveMs)) return
    // A client that does not close its side either is closed a sweep later.
    if (own.isClosing) http.destroy()
    else own.close()
  }

  const closeThose = (mayGo: (requests: number | undefined, isHttp2: boolean) => boolean): void => {
    for (const { socket, requests, http2 } of open) if (mayGo(requests, http2 !== undefined)) socket.destroy()
  }
  // Options of the server that Node's HTTP does not hand on.
  Object.assign(server, { httpAllowHalfOpen: true, pauseOnConnect: true })
  server.closeIdleConnections = () => {
    for (const connection of open) connection.http2?.close()
    closeThose((requests, isHttp2) => requests === 0 && !isHttp2)
  }
  const startSweeping = () => setInterval(sweep, Math.min(sweepEveryMs, writeTimeoutMs)).unref()
  let sweeping = startSweeping()
  let isClosed = false
  const ticking = setInterval(tick, tickEveryMs).unref()
  server.once('close', () => {
    isClosed = true
    clearInterval(sweeping)
    clearInterval(ticking)
  })

  // Under TLS the socket that connects and the socket that carries requests are two objects of one connection.
  const handshaking = new Map<string, Tracked>()
  // Node's TLS and HTTP are given a connection when its turn comes: in a flood of them, those that wait cost little. Under TLS
  // HTTP is given those that do not speak HTTP/2.
  const taken = (event: string) => {
    const listeners = server.listeners(event)
    server.removeAllListeners(event)
    return listeners
  }
  const giveToTls = isTls ? taken('connection') : []
  const giveToHttp = taken(isTls ? 'secureConnection' : 'connection')
  server.on('connection', (socket: Marked) => {
    // Without a listener, a reset would end the process.
    socket.on('error', () => {})
    const connection = track(socket)
    if (isTls || turns.mayGoOn(connection.task)) read(connection)
  })
  const beginHandshake = (connection: Tracked): void => {
    const { socket } = connection
    enter(connection)
    const peer = peerOf(socket)
    handshaking.set(peer, connection)
    socket.once('close', () => {
      if (handshaking.get(peer) === connection) handshaking.delete(peer)
    })
    for (const give of giveToTls) give.call(server, socket)
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
    connection.reading?.stop()
    const again = () => {
      connection.whenAnswered = undefined
      if (!socket.writable) return
      for (const give of giveToHttp) give.call(server, socket)
      pace(connection)
      turns.queue(connection.task)
    }
    connection.reading = undefined
    if (connection.requests) connection.whenAnswered ??= again
    else if (!connection.whenAnswered) again()
  })

  return {
    // One that did not come over the network has nothing to wait for.
    of: (socket: Marked) => {
      const known = socket[mark]
      if (known) return known
      const connection = track(socket)
      enter(connection)
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
      // More than it may have came at once; from now on they come one by one.
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
      waiting.delete(connection)
      unknown.delete(connection)
      suspects.delete(connection)
      letIn()
      // It may send more now.
      if (connection.reading) turns.queue(connection.task)
    },
    refused: given => {
      const connection = given as Tracked
      if (connection.isAuthenticated) return true
      connection.refusals += 1
      if (open.has(connection)) suspect(connection)
      if (connection.refusals < mostRefusals) return true
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
      // At once: waiting for a turn, a client that sends its next request at once would stay paced, behind all that go at full speed.
      if (!endPacing(connection) && connection.reading) turns.queue(connection.task)
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
      unauthenticated: waiting.size + unknown.size + suspects.size,
      queuedRequests: queued,
    }),
    apply: next => {
      ;({ maxConnections, maxUnauthenticated, maxPipelined, maxQueuedRequests } = next)
      ;({ writeTimeoutMs, requestTimeoutMs } = next)
      http2?.apply(maxPipelined)
      clearInterval(sweeping)
      // Also before it listens, and while it waits for the last connections to end.
      if (!isClosed) sweeping = startSweeping()
    },
  }
}

const firstOf = <Item>([item]: ReadonlySet<Item>): Item | undefined => item

const depthOf = (connection: Tracked | undefined): number =>
  (connection?.requests ?? 0) + (connection?.http2?.waiting ?? 0)

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

// Gives the memory of what was read ahead back at once: a flood comes faster than the collector. So large a piece is no
// part of Node's pool of small buffers, and nobody else has it.
const freeReadAhead = (socket: Socket): void => {
  const piece: Buffer | null = socket.removeAllListeners('data').read()
  if (piece && piece.length > greedyBytes && piece.buffer instanceof ArrayBuffer) piece.buffer.transfer(0)
}
