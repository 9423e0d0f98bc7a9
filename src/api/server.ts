// The server of the API: Fastify over plain HTTP, TLS or HTTP/2, with Node's limits and timeouts. Renews its certificate.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { ListenOptions, Socket } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import {
  createCertificateExpiry,
  type TlsFiles,
  type TlsOptions,
  type TlsSettings,
  ticketKeyBytes,
  tlsOptions,
} from '../config/tls.ts'
import type { ClientAddress, IsTrusted } from './connection/client-address.ts'
import { connectionOf, isHttp2 } from './connection/connection.ts'
import {
  type ConnectionLimits,
  type ConnectionObserver,
  type Connections,
  trackConnections,
} from './connection/connections.ts'
import { http2Options } from './connection/http2-request.ts'
import { createListener, maxUrlLength, newRequestId, rawQuery, routableUrlOf } from './request.ts'
import { createUnparsable, type UnparsableParts } from './unparsable.ts'

// Imports would load Node's client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type ServerParts = Omit<UnparsableParts, 'connections'> & {
  readonly observer: ConnectionObserver
  readonly isTrusted: IsTrusted
  readonly clientAddress: ClientAddress
}

export type ServerOptions = ConnectionLimits & {
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
  /** When the gateway stops, how long after that its answers may take to be taken. */
  readonly takenWithinMs: number
  /** How long a connection may be idle between two requests. */
  readonly keepAliveTimeoutMs: number
}

type TlsChange = {
  readonly replaced: readonly ('certificate' | 'ticket key')[]
  readonly use: () => void
}

export type OpenServer = ReturnType<typeof openServer>

// Connections that the kernel queues before clients must wait a second and retry; it may allow fewer (somaxconn).
const listenBacklog = 4_096
// Node's default, for a request that may take longer.
const longestHeadersMs = 60_000
// Node's default, which HTTP/2 does not have by itself.
const maxHeaderBytes = 16 * 1024
// How long nothing may move on a connection whose request is not answered: for a client that takes nothing of its answer, and longer
// than the longest load of weather takes. An idle session of HTTP/2 has the same.
const stalledMs = 120_000

/**
 * Node applies the shorter of the first two until the head of a request is complete, and the longer one after that. It closes
 * an idle connection a second after its time (`keepAliveTimeoutBuffer`), so that a client that heeds `keep-alive` is never late.
 */
const timeoutsOf = ({ requestTimeoutMs, keepAliveTimeoutMs }: ServerOptions) => ({
  requestTimeout: requestTimeoutMs,
  headersTimeout: Math.min(requestTimeoutMs, longestHeadersMs),
  keepAliveTimeout: keepAliveTimeoutMs,
})

const noSchema = (): never => {
  throw new Error('no route of the API has a schema')
}
const noSchemas = { buildValidator: () => noSchema, buildSerializer: () => noSchema }

/** The Fastify instance and its connections; it does not listen yet. @throws InputError when a TLS file can't be used */
export const openServer = (parts: ServerParts, options: ServerOptions & { readonly tls: TlsSettings }) => {
  const { observer, isTrusted, clientAddress } = parts
  let { requestTimeoutMs } = options
  // Seals the tickets of TLS sessions where no file of the settings does.
  const ownTicketKey = randomBytes(ticketKeyBytes)
  let tls = tlsOptions(options.tls, ownTicketKey)
  const server = createListening(options, tls)
  const connections = trackConnections(server, options, isTrusted, {
    connectionClosed: (reason, address) =>
      observer.connectionClosed(reason, clientAddress.ofPeer(address).logged),
  })
  const app = createApplication(server, connections, createUnparsable({ ...parts, connections }))

  return {
    app,
    connections,
    isHttp2: tls !== undefined && options.tls.http2,
    /** When the served certificate expires, ms since the epoch; undefined without TLS. */
    certificateExpiresAt: createCertificateExpiry(() => tls),
    /**
     * Reads the files of TLS again. Returns what differs, and the step that uses it for new connections; undefined when all is in
     * use already, or the server speaks plain HTTP. @throws InputError when a file can't be used
     */
    prepareTls: (files: TlsFiles): TlsChange | undefined => {
      const current = tls
      const next = current && tlsOptions(files, ownTicketKey)
      if (!next) return undefined
      const isSame = (name: 'cert' | 'key' | 'ticketKeys') => next[name].equals(current[name])
      const replaced = [
        ...(isSame('cert') && isSame('key') ? [] : (['certificate'] as const)),
        ...(isSame('ticketKeys') ? [] : (['ticket key'] as const)),
      ]
      if (replaced.length === 0) return undefined
      const use = () => {
        tls = next
        ;(server as TlsServer).setSecureContext(next)
      }
      return { replaced, use }
    },
    listen: async (at: Pick<ListenOptions, 'host' | 'port' | 'reusePort'>): Promise<void> => {
      await app.ready()
      server.listen({ ...at, backlog: listenBacklog })
      await once(server, 'listening')
    },
    apply: (next: ServerOptions): void => {
      ;({ requestTimeoutMs } = next)
      connections.apply(next)
      Object.assign(server, timeoutsOf(next))
    },
    /** Accepts no more connections, and resolves when all requests in flight are answered, or their answers not taken in time. */
    close: async (): Promise<void> => {
      if (server.listening) {
        const closed = once(server, 'close')
        server.close()
        // Requests in flight end by themselves; a client that sends no whole request, or takes nothing, must not keep the process alive.
        const ends = [
          setTimeout(connections.closeSilent, requestTimeoutMs),
          setTimeout(connections.closeAll, requestTimeoutMs + options.takenWithinMs),
        ]
        await closed
        for (const end of ends) clearTimeout(end)
      }
      await app.close()
    },
  }
}

const createApplication = (
  server: Server,
  connections: Connections,
  { refuseUnparsable, refuseConnect }: ReturnType<typeof createUnparsable>,
): FastifyInstance =>
  fastify({
    serverFactory: route => {
      const listener = createListener(connections, route)
      // For an unknown expectation Node would send an empty 417. No client is asked for a body that is not read.
      for (const event of ['request', 'checkExpectation', 'checkContinue']) server.on(event, listener)
      // With HTTP/2 it has a response, and is refused like any other method.
      server.on('connect', (request, given) => {
        if (isHttp2(request)) listener(request, given as unknown as ServerResponse)
        else refuseConnect(given as Socket, connectionOf(request) ?? connections.register(request))
      })
      return server
    },
    genReqId: newRequestId,
    rewriteUrl: routableUrlOf,
    // parameters.ts reads queries strictly.
    routerOptions: { maxParamLength: maxUrlLength, querystringParser: rawQuery as never },
    exposeHeadRoutes: false,
    // No route has a schema. Without the schema compilers a start is a tenth shorter.
    schemaController: { compilersFactory: noSchemas },
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => refuseUnparsable(socket, error),
  }) as unknown as FastifyInstance

const createListening = (
  options: ServerOptions & { readonly tls: TlsSettings },
  tls: TlsOptions | undefined,
): Server => {
  const { requestTimeoutMs } = options
  const http = {
    // The API itself refuses a missing host header, in JSON; Node would send an empty body. Two host headers are joined, and
    // the result is invalid.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body is no stream, whose reading or breaking off would cost more than a refusal.
    optimizeEmptyRequests: true,
    ...timeoutsOf(options),
    // How often Node checks for requests that take too long: by default every 30 s.
    connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    // Bytes of answers that may wait before Node pauses a pipeline.
    highWaterMark: 16 * 1024,
  }
  const secure = tls && { ...http, ...tls, handshakeTimeout: requestTimeoutMs }
  const server = secure ? createSecure(secure, options.tls.http2) : createServer(http)
  server.setTimeout(stalledMs)
  // A client that ends its side still gets its answers.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

const createSecure = (secure: object, hasHttp2: boolean): Server => {
  if (!hasHttp2) return process.getBuiltinModule('node:https').createServer(secure)
  const http2 = process.getBuiltinModule('node:http2')
  const given = { ...http2Options(maxHeaderBytes), ...secure, http1Options: secure }
  const server = http2.createSecureServer(given)
  // Node spares a stalled session that takes no further requests.
  server.on('session', session => session.on('timeout', () => session.destroy()))
  return server as unknown as Server
}
