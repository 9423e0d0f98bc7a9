// Opens the server of the API: Fastify over plain HTTP, TLS or HTTP/2, with Node's own limits and timeouts. Counts its connections
// (connection/connections.ts) and passes requests that Node's parser refuses to connection/unparsable.ts. Routes and hooks are
// in api.ts.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import { endBehind, isLast } from '../common/unread-body.ts'
import type { TlsOptions, TlsSettings } from '../config/tls.ts'
import type { Quota } from '../keys/meter.ts'
import { type AnswerObserver, accessOfUnparsable, countAnswer } from './access-record.ts'
import type { Admission, IsPlain } from './admission.ts'
import type { ClientAddress, IsTrusted } from './connection/client-address.ts'
import {
  type ConnectionLimits,
  type ConnectionObserver,
  type Connections,
  trackConnections,
} from './connection/connections.ts'
import { asHttp1, http2Options, isHttp2 } from './connection/http2.ts'
import { createUnparsable, type ParserError } from './connection/unparsable.ts'
import type { CorsLines } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { maxUrlLength, routableUrlOf } from './routable-url.ts'

// Imports would load Node's client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type ServerParts = {
  readonly quota: Pick<Quota, 'now' | 'resetAfter'>
  readonly observer: AnswerObserver & ConnectionObserver
  readonly admission: Admission
  readonly isPlain: IsPlain
  readonly isTrusted: IsTrusted
  readonly clientAddress: ClientAddress
  readonly corsLines: CorsLines
  readonly tls: TlsOptions | undefined
}

export type ServerOptions = ConnectionLimits & {
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
  /** How long a connection may be idle between two requests. */
  readonly keepAliveTimeoutMs: number
  readonly tls: TlsSettings
}

// Node's default, for a request that may take longer.
const longestHeadersMs = 60_000
// Node's default, which HTTP/2 has to be told.
const maxHeaderBytes = 16 * 1024
// How long nothing may move on a connection whose request is not answered: for a client that takes nothing of its answer, and longer
// than the longest load of weather takes. An idle session of HTTP/2 has the same.
const stalledMs = 120_000
/**
 * Node applies the shorter of the first two until the head of a request is complete, and the longer one after that. It closes
 * an idle connection a second after its time (`keepAliveTimeoutBuffer`), so that a client that heeds `keep-alive` is never late.
 */
export const timeoutsOf = ({
  requestTimeoutMs,
  keepAliveTimeoutMs,
}: Pick<ServerOptions, 'requestTimeoutMs' | 'keepAliveTimeoutMs'>) => ({
  requestTimeout: requestTimeoutMs,
  headersTimeout: Math.min(requestTimeoutMs, longestHeadersMs),
  keepAliveTimeout: keepAliveTimeoutMs,
})

const noSchema = (): never => {
  throw new Error('no route of the API has a schema')
}
const noSchemas = { buildValidator: () => noSchema, buildSerializer: () => noSchema }

/** The Fastify instance and its connections; it does not listen yet. */
export const openServer = (
  { quota, observer, admission, isPlain, isTrusted, clientAddress, corsLines, tls }: ServerParts,
  options: ServerOptions,
): { app: FastifyInstance; connections: Connections } => {
  type Listener = (request: IncomingMessage, response: ServerResponse) => void
  let listener: Listener = () => {}
  const app = fastify({
    serverFactory: route => {
      listener = (request, response) => {
        const connection = connections.of(request)
        if (connections.isEnding(connection)) return
        if (isHttp2(request)) asHttp1(request)
        else if (mayEnd(request) && isLast(request)) {
          connections.endsBehind(connection)
          endBehind(request, response)
        }
        route(request, response)
      }
      return createListening(options, tls, (request, response) => listener(request, response))
    },
    genReqId: ({ headers }) => requestIdOf(headers['x-request-id'] as string | undefined),
    rewriteUrl: routableUrlOf,
    // parameters.ts reads queries strictly.
    routerOptions: { maxParamLength: maxUrlLength, querystringParser: query => query as never },
    exposeHeadRoutes: false,
    // No route has a schema. Without the schema compilers a start is a tenth shorter.
    schemaController: { compilersFactory: noSchemas },
    return503OnClosing: false,
    // Fastify's types have the packet as JSON, not as bytes.
    clientErrorHandler: (error, socket) => refuseUnparsable(socket, error as unknown as ParserError),
  }) as unknown as FastifyInstance
  const connections = trackConnections(app.server, options, isTrusted, {
    connectionClosed: (reason, address) =>
      observer.connectionClosed(reason, clientAddress.masked(clientAddress.ofPeer(address).address)),
  })
  const { refuseUnparsable, refuseConnect } = createUnparsable({
    connections,
    day: () => {
      const arrivedAt = quota.now()
      return { arrivedAt, resetsAt: quota.resetAfter(arrivedAt) }
    },
    isPlain,
    corsLines,
    charge: (key, connection) => admission.charge(key, connection.keyMemo, quota.now()),
    answered: answered => {
      const access = accessOfUnparsable(answered, quota.now(), clientAddress)
      countAnswer(observer, access)
      observer.access?.(access)
    },
  })
  app.server.on('connect', (request, stream) => refuseConnect(stream as Socket, request))
  // For an unknown expectation Node would send an empty 417. Nobody is asked for a body that is not read.
  for (const event of ['checkExpectation', 'checkContinue'])
    app.server.on(event, (...pair: Parameters<Listener>) => listener(...pair))
  return { app, connections }
}

const createListening = (
  options: ServerOptions,
  tls: TlsOptions | undefined,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Server => {
  const { requestTimeoutMs } = options
  const http = {
    // The API itself refuses a missing host header, in JSON; Node would send an empty body. Two host headers are joined, and
    // the result is invalid.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body is no stream that somebody has to read, or to break off, which costs more than to refuse it.
    optimizeEmptyRequests: true,
    ...timeoutsOf(options),
    // How often Node checks for requests that take too long: by default every 30 s.
    connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    // So many bytes of answers may wait before Node reads no further request of a pipeline.
    highWaterMark: 16 * 1024,
  }
  const secure = tls && { ...http, ...tls, handshakeTimeout: requestTimeoutMs }
  const server = secure ? createSecure(secure, options.tls.http2, listener) : createServer(http, listener)
  server.setTimeout(stalledMs)
  // A client that ends its side still gets its answers.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

const createSecure = (secure: object, hasHttp2: boolean, listener: (...pair: never[]) => void): Server => {
  if (!hasHttp2) return process.getBuiltinModule('node:https').createServer(secure, listener as never)
  const http2 = process.getBuiltinModule('node:http2')
  const given = { ...http2Options(maxHeaderBytes), ...secure, http1Options: secure }
  return http2.createSecureServer(given, listener as never) as unknown as Server
}

/** False for nearly all requests. */
const mayEnd = ({ headers }: IncomingMessage): boolean =>
  (headers['content-length'] ?? headers['transfer-encoding'] ?? headers.upgrade) !== undefined
