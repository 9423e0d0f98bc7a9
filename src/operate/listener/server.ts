// The HTTP server of both listeners: bounds connections and what waits on them, and answers what Node's parser rejects.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { closeAfterResponse, endSocket, isParserError, stopParsing } from '../../common/closing.ts'
import { jsonType, Refusal, type RefusalObserver } from './refusal.ts'
import { longestBodyBytes } from './request-input.ts'

// An import by name would also load Node's fetch client, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type ServerBounds = {
  /** Above it, the oldest connections without a complete request are closed. */
  readonly maxConnections: number
  /** For a request to arrive. */
  readonly requestTimeoutMs: number
  /** How long a connection with an unanswered request may make no progress. */
  readonly answerWithinMs: number
}

export type BoundedServer = {
  readonly server: Server
  /** Handles errors of Node's parser and its timeouts. */
  refuse(error: NodeJS.ErrnoException, socket: Socket): void
}

const maxHeaderBytes = 16 * 1024
// How long a connection may be idle between two requests; Node closes it a second later.
const idleForMs = 5_000
// Extra connections that are read before the oldest are closed, so that probes get through.
const maxBeyond = 256
// Unanswered requests of one connection; a read of 64 KiB is parsed in one turn.
const maxWaiting = 200

// No other origin may read answers, and no browser may execute them: the pass-through serves the provider's bytes.
const protection: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** Returns what takes each new connection, and closes the oldest ones that are not busy beyond the bound. */
const closeOldest = (
  maxConnections: number,
  isBusy: (socket: Socket) => boolean,
  onClosed: () => void,
): ((socket: Socket) => void) => {
  // The oldest first.
  const open = new Set<Socket>()
  let isMakingRoom = false
  const makeRoom = (): void => {
    isMakingRoom = false
    for (const socket of open) {
      if (open.size <= maxConnections) return
      if (isBusy(socket)) continue
      onClosed()
      open.delete(socket)
      socket.destroy()
    }
  }
  return socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    if (open.size <= maxConnections || isMakingRoom) return
    isMakingRoom = true
    // By then the event loop has read the new connections.
    setImmediate(() => setImmediate(makeRoom))
  }
}

/** Returns what counts a request until it is answered, and tells whether its connection has too many. */
const countWaiting = () => {
  const waiting = new WeakMap<Socket, number>()
  return (socket: Socket, response: ServerResponse): boolean => {
    const count = (waiting.get(socket) ?? 0) + 1
    waiting.set(socket, count)
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1))
    return count > maxWaiting
  }
}

export const createBoundedServer = (
  handle: RequestListener,
  observer: RefusalObserver,
  { maxConnections, requestTimeoutMs, answerWithinMs }: ServerBounds,
): BoundedServer => {
  // The response to the newest request of each connection, which is sent last.
  const latest = new WeakMap<Socket, ServerResponse>()
  const ended = new WeakSet<Socket>()
  const isBusy = (socket: Socket): boolean => {
    const last = latest.get(socket)
    return last?.req.complete === true && !last.writableFinished
  }
  const isTooMany = countWaiting()
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    // After the last answer of a connection, nothing is a request.
    if (latest.get(socket)?.shouldKeepAlive === false || ended.has(socket)) {
      stopParsing(socket)
      return
    }
    if (isTooMany(socket, response)) {
      observer.refused('connections')
      stopParsing(socket)
      socket.destroy()
      return
    }
    latest.set(socket, response)
    for (const [name, value] of Object.entries(protection)) response.setHeader(name, value)
    // Upgrades are ignored, and Node's parser loses what follows.
    if (request.headers.upgrade !== undefined) closeAfterResponse(request, response)
    handle(request, response)
  }

  const server = createServer(
    {
      // Admission refuses a missing host header with a sentence.
      requireHostHeader: false,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      keepAliveTimeout: idleForMs,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    },
    take,
  )
  server.maxConnections = maxConnections + maxBeyond
  server.on(
    'connection',
    closeOldest(maxConnections, isBusy, () => observer.refused('connections')),
  )
  server.on('drop', () => observer.refused('connections'))
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // A body that is too long is not requested.
    if (Number(request.headers['content-length'] ?? 0) <= longestBodyBytes) response.writeContinue()
    take(request, response)
  })
  // This includes connections that are idle between requests.
  server.setTimeout(answerWithinMs, socket => {
    if (isBusy(socket)) observer.refused('timeout')
    socket.destroy()
  })

  return {
    server,
    refuse: (error, socket) => {
      const last = latest.get(socket)
      // Bytes after the last answer are ignored for a while.
      const isEnding = ended.has(socket) || (last?.headersSent && !last.shouldKeepAlive)
      if (!isParserError(error.code) || !(isEnding || socket.writable)) {
        socket.destroy()
        return
      }
      if (isEnding) return
      ended.add(socket)
      const refusal = unparsable(error.code, requestTimeoutMs)
      observer.refused(refusal.reason)
      if (!last || last.writableFinished) endSocket(socket, bytesOf(refusal))
      // After the answers to all complete requests.
      else if (last.req.complete || last.headersSent) last.once('finish', () => endSocket(socket, ''))
      // The body of the waiting request is invalid.
      else {
        closeAfterResponse(last.req, last)
        const [headers, body] = partsOf(refusal)
        last.writeHead(refusal.status, headers).end(body)
      }
    },
  }
}

/** The refusal of bytes that are no valid request: no HTTP, too large, or too slow. */
const unparsable = (code: string | undefined, requestTimeoutMs: number): Refusal => {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Refusal(
      431,
      'unparsable',
      `the URL and headers must have at most ${maxHeaderBytes / 1024} KiB together`,
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Refusal(408, 'timeout', `the request did not arrive completely within ${requestTimeoutMs} ms`)
  return new Refusal(400, 'unparsable', 'the request is not valid HTTP')
}

const partsOf = ({ message }: Refusal) => {
  const body = JSON.stringify({ error: message })
  const length = Buffer.byteLength(body)
  return [{ 'content-type': jsonType, 'content-length': length, connection: 'close' }, body] as const
}

/** A refusal as it is written straight to a socket, where there is no response to write to. */
const bytesOf = (refusal: Refusal): string => {
  const [headers, body] = partsOf(refusal)
  const lines = Object.entries({ ...protection, ...headers }).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${refusal.status} Refused`, ...lines, '', body].join('\r\n')
}
