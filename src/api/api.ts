// The API listener, a Fastify application: hooks check transport, key, quota and method before every path, known or not;
// endpoints answer; the error handler turns every error into the contract's JSON. server.ts opens the server; connection/ has
// connections, requests that Node's parser refuses and the bytes of a hit. Longer than 300 lines, because hooks, routes and
// error handler share the state of one listener.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { ListenOptions } from 'node:net'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { apiPrefix, type EndpointName, endpoints } from '../common/endpoints.ts'
import { AbohawaError } from '../common/errors.ts'
import {
  createCertificateExpiry,
  type TlsFiles,
  type TlsSettings,
  ticketKeyBytes,
  tlsOptions,
} from '../config/tls.ts'
import { type AnswerObserver, accessOf, countAnswer } from './access-record.ts'
import {
  type AdmissionParts,
  createAdmission,
  createIsPlain,
  createTransportProblem,
  rateLimitFields,
  rateLimitOf,
} from './admission.ts'
import {
  type AddressForm,
  createClientAddress,
  createIsTrusted,
  networkOf,
} from './connection/client-address.ts'
import type { ConnectionCount, ConnectionObserver } from './connection/connections.ts'
import { isHttp2 } from './connection/http2.ts'
import {
  chooseWriter,
  closedFields,
  closedLines,
  keptFields,
  keptLines,
  type WriteReady,
  writerOfBoth,
} from './connection/ready-response.ts'
import { createCors } from './cors.ts'
import { type Endpoint, pathsOf, referencePaths, referenceRedirects } from './endpoint.ts'
import { locationEndpoint } from './endpoints/location.ts'
import { locationsEndpoint } from './endpoints/locations.ts'
import { badRequest, notFound, Problem, problemBody, problemOf } from './problem.ts'
import { createRenderedLocations } from './rendered-locations.ts'
import { failedCellOf } from './rendered-weather.ts'
import { type CorsLines, createSend, jsonType } from './representation.ts'
import type { Answered, RequestState, RequestTrace } from './request-state.ts'
import { isAscii, isDecodable, pathOf } from './routable-url.ts'
import { sentences } from './sentences.ts'
import { openServer, type ServerOptions, timeoutsOf } from './server.ts'
import { type TraceContext, traceContextOf } from './trace-context.ts'
import { type WeatherEndpointParts, weatherEndpointsOf } from './weather-endpoints.ts'

type ApiObserver = AnswerObserver & {
  /** A request ended in 500, with this cause. */
  failed(error: unknown, requestId: string): void
  /** Hits are written header by header, because Node's private fields have changed. */
  writerFellBack(reason: string): void
}

export type ApiParts = Omit<AdmissionParts, 'transportProblem' | 'observer'> &
  WeatherEndpointParts & {
    readonly observer: ApiObserver & AdmissionParts['observer'] & ConnectionObserver
    readonly clock: Clock
    /** Begins the span of a request, the parent of what `next` starts; undefined where requests are not traced. */
    readonly trace?: ((parent: TraceContext | undefined, next: () => void) => RequestTrace) | undefined
    /** By default the writer that is right on this Node. */
    readonly writeReady?: WriteReady
  }

/** The live settings. */
type ApiSettings = Omit<ServerOptions, 'tls'> & {
  /** The origins whose web pages may read the responses; `*` is any. */
  readonly cors: { readonly origins: readonly string[] }
}

export type ApiOptions = ApiSettings & {
  readonly tls: TlsSettings
  readonly trustedProxies: readonly string[]
  /** Where consumers reach the gateway; null for the address that each asks at. */
  readonly publicUrl: string | null
  /** How much of a client's address is logged. */
  readonly clientAddress: AddressForm
  /** The bytes that rendered lists and places may take in memory. */
  readonly keepBytes: number
}

export type Api = {
  /** `inject` sends it requests without a socket. */
  readonly app: FastifyInstance
  readonly server: Server
  connections(): ConnectionCount
  /** When the served certificate expires, ms since the epoch; undefined without TLS. */
  certificateExpiresAt(): number | undefined
  listen(at: Pick<ListenOptions, 'host' | 'port' | 'reusePort'>): Promise<void>
  /** The process is stopping: from now on responses ask consumers to open their next connection elsewhere. */
  drain(): void
  /** Sets new limits, timeouts and origins. */
  apply(settings: ApiSettings): void
  /**
   * Reads the files of TLS again. Returns what differs, and the step that uses it for new connections; undefined when all is in
   * use already, or the server speaks plain HTTP. @throws InputError when a file can't be used
   */
  prepareTls(files: TlsFiles): TlsChange | undefined
  /** Takes no more connections, and resolves when all requests in flight are answered. */
  close(): Promise<void>
}

type CreateReference = typeof import('./reference/served.ts').createReference

type TlsChange = { readonly replaced: readonly ('certificate' | 'ticket key')[]; readonly use: () => void }

/** An application that does not listen yet. @throws InputError when a TLS file can't be used */
export const buildApi = (parts: ApiParts, options: ApiOptions): Api => {
  const { quota, trace } = parts
  let { requestTimeoutMs, keepAliveTimeoutMs } = options
  let keptConnectionLines = keptLines(keepAliveTimeoutMs)
  let cors = createCors(options.cors.origins)
  const corsLines: CorsLines = ({ origin }) => cors?.lines(origin) ?? ''
  const isTrusted = createIsTrusted(options.trustedProxies)
  const isPlain = createIsPlain(options.trustedProxies.length === 0 ? undefined : isTrusted)
  const clientAddress = createClientAddress(isTrusted, options.clientAddress)
  const transportProblem = createTransportProblem(isPlain)
  const admission = createAdmission({ ...parts, transportProblem })
  // Seals the tickets of TLS sessions where no file of the settings does.
  const ownTicketKey = randomBytes(ticketKeyBytes)
  let tls = tlsOptions(options.tls, ownTicketKey)
  const { app, connections } = openServer(
    { ...parts, admission, isPlain, isTrusted, clientAddress, corsLines, tls },
    options,
  )

  app.decorateRequest('state')
  app.addHook('onRequest', (request, reply, done) => {
    request.state = openState(request.raw)
    follow(request, reply)
    if (trace) beginTrace(trace, request, done)
    else done()
  })
  // The order of the contract: a client without a key learns nothing, and every request with a key is counted.
  app.addHook('onRequest', (request, reply) => {
    const { raw, state } = request
    if (request.routeOptions.config.isOpen) return openToAll(request, reply)
    if (raw.method === 'OPTIONS' && (cors || isPreflight(raw))) {
      openToAll(request, reply)
      return answerPreflight(request, reply)
    }
    return admission.decide(raw, state).then(decision => {
      connections.authenticated(state.connection)
      return admission.enforce(raw, state, decision)
    })
  })

  const openState = (request: IncomingMessage): RequestState => {
    const { traceparent } = request.headers
    const arrivedAt = quota.now()
    const connection = connections.of(request)
    // Before the socket is closed, for it has no address then.
    if (parts.observer.access || trace) connection.peer ??= clientAddress.ofPeer(request.socket.remoteAddress)
    return {
      connection,
      startedAt: performance.now(),
      arrivedAt,
      resetsAt: quota.resetAfter(arrivedAt),
      client: null,
      remaining: 0,
      isDecided: false,
      cache: undefined,
      cell: undefined,
      bytes: 0,
      encoding: undefined,
      reason: undefined,
      refusedKeyId: undefined,
      traceId: traceparent === undefined ? undefined : traceContextOf(String(traceparent))?.traceId,
      trace: undefined,
    }
  }
  // The close of a response is the one event that comes exactly once, however a request ends.
  const follow = (request: FastifyRequest, { raw: response }: FastifyReply): void => {
    const { raw, state } = request
    const { connection } = state
    connections.requestCame(connection, raw)
    const { 'content-length': length, 'transfer-encoding': coding } = raw.headers
    if (length !== undefined || coding !== undefined) connections.bodyMayCome(connection, raw)
    const connectionRequest = connection.requestsCame
    // 499: the client disconnected before the response started.
    response.statusCode = 499
    response.on('close', () => {
      connections.requestEnded(connection)
      const { observer } = parts
      const answered: Answered = {
        endpoint: request.routeOptions.config.endpoint ?? 'other',
        status: response.statusCode,
        ms: Math.round((performance.now() - state.startedAt) * 1000) / 1000,
        keyId: state.client?.keyId,
        arrivedAt: state.arrivedAt,
      }
      countAnswer(observer, answered)
      // Making the record takes most of a hit's own time, so it is made only for a log or a trace.
      if (!observer.access && !state.trace) return
      const access = accessOf(request, answered, connectionRequest, clientAddress)
      observer.access?.(access)
      state.trace?.end(access)
    })
  }

  const answers = endpointsOf(parts, options.keepBytes)
  const names = Object.keys(answers) as EndpointName[]
  const dateOf = createDate(parts.clock)
  let isDraining = false
  const staysAfter = ({ raw }: FastifyReply): boolean => raw.shouldKeepAlive && !isDraining
  const connectionLinesOf = (reply: FastifyReply): string =>
    staysAfter(reply) ? keptConnectionLines : closedLines
  /** The headers of every response that Fastify writes. */
  const ownFields = (id: string, state: RequestState, reply: FastifyReply, ends: boolean) => ({
    ...rateLimitFields(rateLimitOf(state)),
    'x-request-id': id,
    date: dateOf(),
    ...(isHttp2(reply.raw) ? {} : !ends && staysAfter(reply) ? keptFields(keepAliveTimeoutMs) : closedFields),
  })
  // A client that needs no key has the same limits on its connection as one with a wrong key.
  // It is counted at once, before the next request of a pipeline comes.
  const openToAll = ({ raw, state }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const problem = transportProblem(raw)
    if (problem) throw problem
    if (!connections.refused(state.connection)) reply.raw.shouldKeepAlive = false
    return nothingToWaitFor
  }
  const answerPreflight = async (
    { id, raw, state }: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const { origin } = raw.headers
    const allowed = cors?.preflight(origin)
    if (!allowed) throw new Problem(403, sentences.originNotAllowed(origin ?? ''))
    return reply
      .code(204)
      .headers({ ...allowed, ...ownFields(id, state, reply, false) })
      .send()
  }
  const write = tls && options.tls.http2 ? writerOfBoth(writerFor(parts)) : writerFor(parts)
  const send = createSend(write, dateOf, connectionLinesOf, corsLines)
  for (const name of names) {
    const answer = answers[name]
    app.route({
      method: ['GET', 'HEAD'],
      url: apiPrefix + endpoints[name].path,
      config: { endpoint: name },
      handler: (request, reply) => {
        const { params, query, state } = request
        const found = answer({
          params: params as Record<string, string>,
          query: query as string,
          keyId: state.client?.keyId,
        })
        return found instanceof Promise
          ? found.then(representation => send(request, reply, representation))
          : send(request, reply, found)
      },
    })
  }
  const addressOf = ({ raw: { socket, headers } }: FastifyRequest): string => {
    const peer = clientAddress.ofPeer(socket.remoteAddress)
    return networkOf(clientAddress.behind(peer, headers['x-forwarded-for'] as string | undefined) ?? '')
  }
  // The first request for the reference loads it.
  let reference: ReturnType<CreateReference> | undefined
  app.register(async open => {
    await open.register(rateLimit, {
      timeWindow: minuteMs,
      max: referencePerMinute,
      keyGenerator: addressOf,
      // The headers of the contract are those of a key's quota.
      ...withoutOwnHeaders,
      errorResponseBuilder: (_request, { ttl }) =>
        new Problem(429, sentences.referenceBusy(referencePerMinute), {
          'retry-after': String(Math.ceil(ttl / 1000)),
        }),
    })
    routeReference(open)
  })
  const routeReference = (open: FastifyInstance): void => {
    for (const path of referencePaths)
      open.route({
        method: ['GET', 'HEAD'],
        url: path,
        config: { endpoint: 'reference', isOpen: true },
        handler: async (request, reply) => {
          const { createReference } = await import('./reference/served.ts')
          reference ??= createReference(options.publicUrl)
          const { raw, query } = request
          const { host, 'accept-language': acceptLanguage } = raw.headers
          const isHttps = options.trustedProxies.length > 0 || 'encrypted' in raw.socket
          const address = host && `${isHttps ? 'https' : 'http'}://${host}`
          const representation = await reference({ path, query: query as string, acceptLanguage, address })
          await send(request, reply, representation)
        },
      })
    for (const [path, location] of referenceRedirects)
      open.route({
        method: ['GET', 'HEAD'],
        url: path,
        config: { endpoint: 'reference', isOpen: true },
        handler: async ({ id, raw, state }, reply) => {
          return reply
            .code(308)
            .headers({
              location,
              'cache-control': 'no-cache',
              ...cors?.fields(raw.headers.origin),
              ...ownFields(id, state, reply, false),
            })
            .send()
        },
      })
  }
  app.setNotFoundHandler(({ originalUrl }) => {
    if (!isAscii(originalUrl)) throw badRequest(sentences.http.notEncoded)
    const path = pathOf(originalUrl)
    if (path === '') throw badRequest(sentences.path.missing(originalUrl))
    throw isDecodable(path)
      ? notFound(sentences.path.nothing(path, pathsOf(names)))
      : badRequest(sentences.path.notEncoded(path))
  })
  app.setErrorHandler((error, request, reply) => {
    const { state, id } = request
    admission.failed(state, error)
    const problem = problemOf(error, parts.clock.now())
    const isUnauthenticated = !state.client && problem.status < 500
    if (problem.endsConnection && !isHttp2(request.raw)) connections.endsBehind(state.connection)
    const stays = !isUnauthenticated || connections.refused(state.connection)
    const ends = problem.endsConnection || !stays
    const body = problemBody(problem)
    if (request.raw.method !== 'HEAD') state.bytes = body.length
    if (problem.status >= 500) {
      state.reason = error instanceof AbohawaError ? error.code : 'internal'
      state.cell = failedCellOf(error)
      parts.observer.failed(error, id)
    }
    void reply
      .code(problem.status)
      .headers({
        'content-type': jsonType,
        'cache-control': 'no-store',
        ...cors?.fields(request.raw.headers.origin),
        ...problem.headers,
        ...ownFields(id, state, reply, ends),
      })
      .send(body)
  })

  return {
    app,
    server: app.server,
    connections: connections.count,
    certificateExpiresAt: createCertificateExpiry(() => tls),
    listen: async at => {
      await app.ready()
      app.server.listen({ ...at, backlog: listenBacklog })
      await once(app.server, 'listening')
    },
    drain: () => {
      isDraining = true
      connections.drain()
    },
    apply: settings => {
      ;({ requestTimeoutMs, keepAliveTimeoutMs } = settings)
      keptConnectionLines = keptLines(keepAliveTimeoutMs)
      cors = createCors(settings.cors.origins)
      connections.apply(settings)
      Object.assign(app.server, timeoutsOf(settings))
    },
    prepareTls: files => {
      const former = tls
      const next = former && tlsOptions(files, ownTicketKey)
      if (!next) return undefined
      const isSame = (name: 'cert' | 'key' | 'ticketKeys') => next[name].equals(former[name])
      const replaced = [
        ...(isSame('cert') && isSame('key') ? [] : (['certificate'] as const)),
        ...(isSame('ticketKeys') ? [] : (['ticket key'] as const)),
      ]
      if (replaced.length === 0) return undefined
      const use = () => {
        tls = next
        ;(app.server as TlsServer).setSecureContext(next)
      }
      return { replaced, use }
    },
    close: async () => {
      if (app.server.listening) {
        const closed = once(app.server, 'close')
        app.server.close()
        // Requests in flight end by themselves; a connection that never sends a whole request must not keep the process alive.
        const patience = setTimeout(connections.closeSilent, requestTimeoutMs)
        await closed
        clearTimeout(patience)
      }
      await app.close()
    },
  }
}

/** Sent by browsers before a request of a web page, without its key. */
const isPreflight = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined && headers['access-control-request-method'] !== undefined

const endpointsOf = (parts: ApiParts, keepBytes: number): Readonly<Record<EndpointName, Endpoint>> => {
  const { catalogue } = parts
  const locations = createRenderedLocations(keepBytes)
  return {
    ...weatherEndpointsOf(parts),
    locations: locationsEndpoint(catalogue, locations),
    location: locationEndpoint(catalogue, locations),
  }
}

const nothingToWaitFor = Promise.resolve()

// A visit of the reference takes five, so that thirty people behind one address may open it at once.
const referencePerMinute = 300
const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'] as const
const noHeaders = Object.fromEntries(names.map(name => [name, false]))
const withoutOwnHeaders = { addHeaders: noHeaders, addHeadersOnExceeding: noHeaders }

// Connections that the kernel queues before clients must wait a second and retry; it may allow fewer (somaxconn).
const listenBacklog = 4_096

const beginTrace = (
  trace: NonNullable<ApiParts['trace']>,
  { raw: { headers }, state }: FastifyRequest,
  next: () => void,
): void => {
  state.trace = trace(traceContextOf(String(headers.traceparent ?? '')), next)
  state.traceId = state.trace.traceId
}

/** The date of a response as text, made once a second. */
const createDate = (clock: Clock): (() => string) => {
  let second = 0
  let date = ''
  return () => {
    const now = Math.floor(clock.now() / 1000)
    if (now !== second) {
      second = now
      date = new Date(now * 1000).toUTCString()
    }
    return date
  }
}

const writerFor = ({ writeReady, observer }: ApiParts): WriteReady => {
  if (writeReady) return writeReady
  const { write, fault } = chooseWriter()
  if (fault !== undefined) observer.writerFellBack(fault)
  return write
}
