// The HTTP server under the ops listener and the health listener: bounds connections, heads, bodies that nobody reads, and the
// time of requests and answers, so that nobody exhausts the process through it; answers what never became a request.

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIP, type ListenOptions, type Socket } from 'node:net'
import { messageOf } from '../../common/errors.ts'
import { askInTurn, pendingResponse } from '../../common/expected-body.ts'
import { boundBody, closeLingering, endBehind as endConnectionBehind } from '../../common/unread-body.ts'
import { bodyFault } from './body-fault.ts'
import { Refusal, type RefusalObserver } from './refusal.ts'

// Imported by name it would load Node's own client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type ServerBounds = {
  readonly maxConnections: number
  /** Within which a request must have arrived. */
  readonly requestTimeoutMs: number
  /** Within which an answer must be made and read; a reader that takes longer is dropped. */
  readonly answerWithinMs: number
}

export type BoundedServer = {
  readonly server: Server
  listen(at: Pick<ListenOptions, 'host' | 'port'>): Promise<unknown>
  /** Breaks off what is still connected. */
  close(): Promise<void>
}

/**
 * Answers a request, or throws: a Refusal is sent as it is, any other error as a 500.
 * @param withoutDeadline lifts the bound on the time of this answer, for one that never ends
 */
export type Handle = (
  request: IncomingMessage,
  response: ServerResponse,
  withoutDeadline: () => void,
) => Promise<void>

const jsonType = 'application/json; charset=utf-8'
const maxHeaderBytes = 16 * 1024
// How long a connection may be idle between two requests; Node closes it a second later.
const idleForMs = 5_000

// Nothing that is said here is for a page of another origin, and nothing is to run in a browser: what the provider says
// is passed on under our origin.
const protection: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

export const createBoundedServer = (
  handle: Handle,
  observer: RefusalObserver,
  bounds: ServerBounds,
): BoundedServer => {
  const { requestTimeoutMs, answerWithinMs } = bounds
  const fail = (error: unknown, request: IncomingMessage, response: ServerResponse): void => {
    if (response.headersSent) {
      response.destroy()
      return
    }
    const isRefusal = error instanceof Refusal
    if (isRefusal) observer.refused(error.reason, addressOf(request))
    const body = Buffer.from(JSON.stringify({ error: messageOf(error) }))
    response
      .writeHead(isRefusal ? error.status : 500, {
        ...(isRefusal ? error.headers : {}),
        'content-type': jsonType,
        'content-length': body.length,
      })
      .end(body)
  }

  // The request that came last on each connection.
  const latest = new WeakMap<Socket, IncomingMessage>()
  const listen = (request: IncomingMessage, response: ServerResponse): void => {
    latest.set(request.socket, request)
    const late = setTimeout(() => {
      observer.refused('timeout')
      request.socket.destroy()
    }, answerWithinMs).unref()
    response.once('close', () => clearTimeout(late))
    for (const [name, value] of Object.entries(protection)) response.setHeader(name, value)
    boundBody(request, response, () => observer.refused('unread_body'))
    // An offer to upgrade is ignored, and Node's parser loses what follows it.
    if (request.headers.upgrade !== undefined) endConnectionBehind(request, response)
    const refusal = bodyFault(request)
    if (refusal) fail(refusal, request, response)
    else handle(request, response, () => clearTimeout(late)).catch(error => fail(error, request, response))
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
    listen,
  )
  server.maxConnections = bounds.maxConnections
  server.on('drop', () => observer.refused('connections'))
  server.on('checkContinue', askInTurn(listen))
  // An expectation we do not know is no reason for the empty 417 that Node would send.
  server.on('checkExpectation', listen)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const refusal = unparsable(error.code, requestTimeoutMs)
    observer.refused(refusal.reason)
    refuseOn(socket as Socket, refusal, latest.get(socket as Socket))
  })
  // Node would close without a word.
  server.on('connect', (request, socket) => {
    // It hands the socket over bare: without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy())
    const allow = 'GET, HEAD'
    const sentence = `the method is CONNECT; allowed: ${allow}`
    const refusal = new Refusal(405, 'method', sentence, { allow })
    observer.refused(refusal.reason, addressOf(request))
    refuseOn(socket as Socket, refusal, undefined)
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

// A Unix socket has no address: there the process that hands requests on names that of its caller.
const addressOf = ({ socket, headers }: IncomingMessage): string | undefined =>
  socket.remoteAddress ?? addressIn(headers['x-forwarded-for'] as string | undefined)
const addressIn = (given = ''): string | undefined => (isIP(given) === 0 ? undefined : given)

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

// Straight to the socket, because there is no response to write to.
const refuseOn = (socket: Socket, refusal: Refusal, latest: IncomingMessage | undefined): void => {
  const owed = owedResponse(socket)
  if (owed) {
    endBehind(owed, socket)
    return
  }
  if (latest && !latest.complete && !pendingResponse(socket)) {
    // It was answered before its body was read, and a second answer would be taken for that of another request.
    closeLingering(socket)
    return
  }
  const body = JSON.stringify({ error: refusal.message })
  const headers = Object.entries({
    ...protection,
    ...refusal.headers,
    'content-type': jsonType,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`)
  socket.write([`HTTP/1.1 ${refusal.status} Refused`, ...headers, '', body].join('\r\n'))
  closeLingering(socket)
}

// Every earlier request on the connection has its answer; what came behind them gets none.
const endBehind = (owed: ServerResponse, socket: Socket): void => {
  owed.once('finish', () => {
    const next = owedResponse(socket)
    if (next) endBehind(next, socket)
    else closeLingering(socket)
  })
}

const owedResponse = (socket: Socket): ServerResponse | undefined => {
  const pending = pendingResponse(socket)
  return pending && (pending.headersSent || pending.req.complete) ? pending : undefined
}
