// Opens the server of the API: Fastify over plain HTTP, TLS or HTTP/2, with limits and timeouts. Tracks its connections
// (connection/connections.ts) and passes requests that Node's parser refuses to connection/unparsable.ts. Routes and hooks are
// in api.ts.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import { askInTurn } from '../expected-body.ts'
import type { Quota } from '../metering/meter.ts'
import { type AnswerObserver, accessOfUnparsable, countAnswer } from './access-record.ts'
import type { Admission, IsPlain } from './admission.ts'
import type { ClientAddress } from './connection/client-address.ts'
import {
  type ConnectionLimits,
  type ConnectionObserver,
  type Connections,
  trackConnections,
} from './connection/connections.ts'
import { createHttp2, type Http2 } from './connection/http2.ts'
import type { Http2Request, Http2Response } from './connection/http2-exchange.ts'
import type { TlsOptions, TlsSettings } from './connection/tls.ts'
import { createUnparsable, type ParserError } from './connection/unparsable.ts'
import type { CorsLines } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { maxUrlLength, routableUrl, routableUrlOf } from './routable-url.ts'
import type { UnauthenticatedBytes } from './unauthenticated-bytes.ts'

export type ServerParts = {
  readonly quota: Pick<Quota, 'now' | 'resetAfter'>
  readonly observer: AnswerObserver & ConnectionObserver
  readonly admission: Admission
  readonly isPlain: IsPlain
  readonly clientAddress: ClientAddress
  readonly corsLines: CorsLines
  readonly unauthenticated: UnauthenticatedBytes
  readonly tls: TlsOptions | undefined
}

export type ServerOptions = ConnectionLimits & { readonly tls: TlsSettings }

// Node's default, for a request that may take longer.
const longestHeadersMs = 60_000

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
  { quota, observer, admission, isPlain, clientAddress, corsLines, unauthenticated, tls }: ServerParts,
  options: ServerOptions,
): { app: FastifyInstance; connections: Connections; http2: Http2 | undefined } => {
  const { requestTimeoutMs } = options
  const http = {
    // The API itself refuses a missing host header, in JSON; Node would send an empty body. Two host headers are joined, and
    // the result is invalid.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    ...timeoutsOf(options),
    // How often Node checks for requests that take too long: by default every 30 s.
    connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    // How much is read ahead from a connection whose requests wait.
    highWaterMark: 16 * 1024,
  }
  const hasHttp2 = tls !== undefined && options.tls.http2
  const offered = hasHttp2 ? { ALPNProtocols: ['h2', 'http/1.1'] } : {}
  const app = fastify({
    ...(tls ? { https: { ...http, ...tls, ...offered, handshakeTimeout: requestTimeoutMs } } : { http }),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    genReqId: ({ headers }) => requestIdOf(headers['x-request-id'] as string | undefined),
    rewriteUrl: hasHttp2 ? routableUrlOf : ({ url = '' }) => routableUrl(url),
    // parameters.ts reads queries strictly.
    routerOptions: { maxParamLength: maxUrlLength, querystringParser: query => query as never },
    exposeHeadRoutes: false,
    // No route has a schema. Without the schema compilers a start is a tenth shorter.
    schemaController: { compilersFactory: noSchemas },
    return503OnClosing: false,
    // Fastify's types have the packet as JSON, not as bytes.
    clientErrorHandler: (error, socket) => refuseUnparsable(socket, error as unknown as ParserError),
  }) as unknown as FastifyInstance
  const http2 = hasHttp2
    ? createHttp2(options.maxPipelined, (request, response) => app.routing(...asHttp1(request, response)))
    : undefined
  const connections = trackConnections(app.server, options, observer, http2)
  const { refuseUnparsable, refuseConnect } = createUnparsable({
    connections,
    day: () => {
      const arrivedAt = quota.now()
      return { arrivedAt, resetsAt: quota.resetAfter(arrivedAt) }
    },
    isPlain,
    corsLines,
    unauthenticated: unauthenticated.count,
    charge: (key, connection) => admission.charge(key, connection.keyMemo, quota.now()),
    answered: answered => {
      const access = accessOfUnparsable(answered, quota.now(), clientAddress)
      countAnswer(observer, access)
      observer.access?.(access)
    },
  })
  app.server.on('connect', (_request, socket) => refuseConnect(socket as Socket))
  // For an unknown expectation Node would send an empty 417.
  app.server.on('checkExpectation', app.routing)
  app.server.on('checkContinue', askInTurn(app.routing))
  return { app, connections, http2 }
}

/** Fastify needs of both what these have. */
const asHttp1 = (...pair: [Http2Request, Http2Response]) =>
  pair as unknown as [IncomingMessage, ServerResponse]
