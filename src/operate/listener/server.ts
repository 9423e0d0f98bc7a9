// The HTTP server under the ops listener and the health listener: bounds connections, heads, bodies that nobody reads, and the
// time of requests and answers, so that nobody exhausts the process through it; answers what never became a request.

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import { endAtLast } from '../../common/last-request.ts'
import { endBehind, endWith, isOfParser } from '../../common/unread-body.ts'
import { addressOf, answerError, jsonType, Refusal, type RefusalObserver } from './refusal.ts'

// Imported by name it would load Node's own client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type ServerBounds = {
  /** Beyond it the oldest connections without a whole request are closed. */
  readonly maxConnections: number
  /** Within which a request must have arrived. */
  readonly requestTimeoutMs: number
  /** Within which an answer must be made and read; a reader that takes longer is dropped. */
  readonly answerWithinMs: number
}

export type BoundedServer = {
  readonly server: Server
  listen(at: Pick<ListenOptions, 'host' | 'port'>): Promise<unknown>
  close(): Promise<void>
}

/** Answers a request, or throws: a Refusal is sent as it is, any other error as a 500. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** The most that a body may have: some hundred bytes are enough for each. */
export const longestBodyBytes = 4_096
const maxHeaderBytes = 16 * 1024
// How long a connection may be idle between two requests; Node closes it a second later.
const idleForMs = 5_000
// A connection may be about to send its request: so many beyond the bound are heard first, and probes beside busy connections.
const maxBeyond = 256
// On one connection. All of a read of 64 KiB is parsed at once.
const maxWaiting = 200

// Nothing that is said here is for a page of another origin, and nothing is to run in a browser: what the provider says
// is passed on under our origin.
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
    // By then the event loop has read what the new ones have sent.
    setImmediate(() => setImmediate(makeRoom))
  }
}

/** Returns what counts a request until it is answered, and tells whether its connection has too many. */
const countWaiting = () => {
  const waiting = new WeakMap<Socket, number>()
  return (socket: Socket, response: ServerResponse): boolean => {
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > maxWaiting) return true
    waiting.set(socket, count)
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1))
    return false
  }
}

export const createBoundedServer = (
  handle: Handle,
  observer: RefusalObserver,
  { maxConnections, requestTimeoutMs, answerWithinMs }: ServerBounds,
): BoundedServer => {
  // The response to the request that came last on each connection: those before it are sent before it.
  const latest = new WeakMap<Socket, ServerResponse>()
  const ended = new WeakSet<Socket>()
  const isBusy = (socket: Socket): boolean => {
    const last = latest.get(socket)
    return last?.req.complete === true && !last.writableFinished
  }
  const opened = closeOldest(maxConnections, isBusy, () => observer.refused('connections'))
  const isTooMany = countWaiting()
  const take = (request: IncomingMessage, response: ServerResponse, waits = false): void => {
    const late = setTimeout(() => {
      observer.refused('timeout')
      request.socket.destroy()
    }, answerWithinMs).unref()
    response.once('close', () => clearTimeout(late))
    for (const [name, value] of Object.entries(protection)) response.setHeader(name, value)
    // An offer to upgrade is ignored, and Node's parser loses what follows it.
    if (request.headers.upgrade !== undefined) endBehind(request, response)
    const refusal = bodyFault(request)
    if (refusal) {
      answerError(refusal, response, observer)
      return
    }
    // A body that is too long is not asked for.
    if (waits && Number(request.headers['content-length'] ?? 0) <= longestBodyBytes) response.writeContinue()
    handle(request, response).catch(error => answerError(error, response, observer))
  }
  const listen = (request: IncomingMessage, response: ServerResponse, waits = false): void => {
    const { socket } = request
    const before = latest.get(socket)
    // Behind the last answer of a connection nothing is a request any more.
    if (before?.shouldKeepAlive === false || ended.has(socket)) {
      endAtLast(socket)
      return
    }
    if (isTooMany(socket, response)) {
      observer.refused('connections')
      endAtLast(socket)
      socket.destroy()
      return
    }
    latest.set(socket, response)
    // While earlier requests have no answer, Node would write `100 Continue` between the head and the body of this one's.
    // It may be refused meanwhile, by what came of its body.
    if (waits && before && !response.socket)
      before.once('finish', () => response.headersSent || take(request, response, true))
    else take(request, response, waits)
  }

  const server = createServer(
    {
      // A missing host header is refused by us, with a sentence.
      requireHostHeader: false,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      keepAliveTimeout: idleForMs,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    },
    (request, response) => listen(request, response),
  )
  server.maxConnections = maxConnections + maxBeyond
  server.on('connection', opened)
  server.on('drop', () => observer.refused('connections'))
  server.on('checkContinue', (request, response) => listen(request, response, true))
  // An expectation we do not know is no reason for the empty 417 that Node would send.
  server.on('checkExpectation', (request, response) => listen(request, response))

  /** Refuses what is no request, behind the answers to all whole requests before it, and takes nothing further. */
  const refuse = (socket: Socket, refusal: Refusal, from?: string): void => {
    ended.add(socket)
    const last = latest.get(socket)
    // What is at fault is the body of a request that waits for its answer.
    if (last && !last.req.complete && !last.headersSent) {
      answerError(refusal, last, observer)
      return
    }
    observer.refused(refusal.reason, from)
    // A request that has its answer, or will have it, has no second one.
    const isOwed = last !== undefined && !last.writableFinished
    if (isOwed) last.once('finish', () => endWith(socket, ''))
    else endWith(socket, last && !last.req.complete ? '' : bytesOf(refusal))
  }
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    const last = latest.get(socket)
    // What a client sends on behind the last answer is read past for a while.
    const isEnding = ended.has(socket) || (last?.headersSent && !last.shouldKeepAlive)
    if (!isOfParser(error.code) || !(isEnding || socket.writable)) socket.destroy()
    else if (!isEnding) refuse(socket, unparsable(error.code, requestTimeoutMs))
  })
  // Node would close without a word.
  server.on('connect', (request, stream) => {
    const socket = stream as Socket
    // It hands the socket over bare: without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy())
    const allow = 'GET, HEAD'
    const sentence = `the method is CONNECT; allowed: ${allow}`
    refuse(socket, new Refusal(405, 'method', sentence, { allow }), addressOf(request))
    socket.resume()
  })

  return {
    server,
    listen: at => once(server.listen(at), 'listening'),
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * A body with one of these methods means nothing, and software in between disagrees about where it ends, so that its bytes may be read
 * as a request. Chunks are a body even when there are none; a length of 0 is none.
 */
const bodyFault = ({ method = '', headers }: IncomingMessage): Refusal | undefined => {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  return hasBody && bodiless.has(method)
    ? new Refusal(
        400,
        'body',
        `the ${method} request has a body; allowed: none with GET, HEAD, DELETE, OPTIONS, TRACE and CONNECT`,
      )
    : undefined
}

/** The refusal of bytes that are no request: no HTTP, too large, or too slow. */
const unparsable = (code: string | undefined, requestTimeoutMs: number): Refusal => {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Refusal(
      431,
      'unparsable',
      `the URL and headers are too large; allowed: ${maxHeaderBytes / 1024} KiB together`,
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Refusal(408, 'timeout', `the request did not arrive completely within ${requestTimeoutMs} ms`)
  return new Refusal(400, 'unparsable', 'the request is not valid HTTP')
}

/** A refusal as it is written straight to a socket, where there is no response to write to. */
const bytesOf = (refusal: Refusal): string => {
  const body = JSON.stringify({ error: refusal.message })
  const headers = Object.entries({
    ...protection,
    ...refusal.headers,
    'content-type': jsonType,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${refusal.status} Refused`, ...headers, '', body].join('\r\n')
}
