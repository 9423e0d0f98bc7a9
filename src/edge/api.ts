// The API listener, a Fastify application: hooks put transport, key, quota and method before every path, known or not;
// endpoints answer; the error handler turns whatever goes wrong into the contract's JSON. The server is opened by server.ts;
// connections, requests that Node's parser refuses and the bytes of a hit are in connection/. Above 300 lines, since hooks,
// routes and error handler share the state of one listener.

import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { ListenOptions } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import { apiPrefix, type EndpointName, endpoints } from '../endpoints.ts'
import { AbohawaError } from '../errors.ts'
import { type AnswerObserver, accessOf, countAnswer } from './access-record.ts'
import {
  type AdmissionParts,
  createAdmission,
  createIsPlain,
  createTransportProblem,
  rateLimitFields,
  rateLimitOf,
} from './admission.ts'
import { type AddressForm, createClientAddress } from './connection/client-address.ts'
import type { ConnectionCount, ConnectionLimits, ConnectionObserver } from './connection/connections.ts'
import { isHttp2, writeToStream } from './connection/http2.ts'
import { chooseWriter, connectionFields, type WriteReady } from './connection/ready-response.ts'
import { createCertificateExpiry, type TlsFiles, type TlsSettings, tlsOptions } from './connection/tls.ts'
import { createIsTrusted } from './connection/trusted-proxies.ts'
import { createCors } from './cors.ts'
import { type Endpoint, pathsOf, referencePaths, referenceRedirects } from './endpoint.ts'
import { locationEndpoint } from './endpoints/location.ts'
import { locationsEndpoint } from './endpoints/locations.ts'
import { badRequest, notFound, problemBody, problemOf } from './problem.ts'
import { createRenderedLocations } from './rendered-locations.ts'
import { failedCellOf } from './rendered-weather.ts'
import { type CorsLines, createSend, jsonType } from './representation.ts'
import type { Answered, RequestState, RequestTrace } from './request-state.ts'
import { isAscii, isDecodable, pathOf } from './routable-url.ts'
import { sentences } from './sentences.ts'
import { openServer, timeoutsOf } from './server.ts'
import { type TraceContext, traceContextOf } from './trace-context.ts'
import {
  createUnauthenticatedBytes,
  type UnauthenticatedObserver,
  type UnauthenticatedRate,
} from './unauthenticated-bytes.ts'
import { type WeatherEndpointParts, weatherEndpointsOf } from './weather-endpoints.ts'

type ApiObserver = AnswerObserver & {
  /** A request that ended in 500, with what caused it. */
  failed(error: unknown, requestId: string): void
  /** Hits are written header by header, because Node's private fields are not what they were. */
  writerFellBack(reason: string): void
}

export type ApiParts = Omit<AdmissionParts, 'transportProblem' | 'observer'> &
  WeatherEndpointParts & {
    readonly observer: ApiObserver & AdmissionParts['observer'] & ConnectionObserver & UnauthenticatedObserver
    readonly clock: Clock
    /** Begins the span of a request, to which belongs what `next` starts; undefined where requests are not traced. */
    readonly trace?: ((parent: TraceContext | undefined, next: () => void) => RequestTrace) | undefined
    /** The one that is found to be right on this Node, unless given. */
    readonly writeReady?: WriteReady
  }

/** What may change while the API is served. */
type ApiSettings = ConnectionLimits &
  UnauthenticatedRate & {
    /** The web pages that may read the responses, by origin; `*` is any. */
    readonly cors: { readonly origins: readonly string[] }
  }

export type ApiOptions = ApiSettings & {
  readonly tls: TlsSettings
  readonly trustedProxies: readonly string[]
  /** How much of a client's address is logged. */
  readonly clientAddress: AddressForm
  /** Processes that share what is bounded over all of them. */
  readonly workers: number
  /** What rendered lists and places may take in memory, in bytes. */
  readonly keepBytes: number
}

export type Api = {
  /** `inject` sends it requests without a socket. */
  readonly app: FastifyInstance
  readonly server: Server
  connections(): ConnectionCount
  /** Of the certificate that is served, ms since the epoch; undefined without TLS. */
  certificateExpiresAt(): number | undefined
  /** A host and a port, the path of a Unix socket, or a file descriptor that listens already. */
  listen(
    at: Pick<ListenOptions, 'host' | 'port' | 'reusePort' | 'path'> & { readonly fd?: number },
  ): Promise<void>
  /** The process is on its way out: from now on responses ask consumers to open their next connection elsewhere. */
  drain(): void
  /** Limits, timeouts and origins from now on. */
  apply(settings: ApiSettings): void
  /**
   * Reads the files of the certificate again. Returns the step that gives it to new connections; undefined when it is the
   * one in use, or the server speaks plain HTTP. @throws InputError when a file can't be used
   */
  prepareCertificate(files: TlsFiles): (() => void) | undefined
  /** Takes no more connections, and resolves when what is in flight is answered. */
  close(): Promise<void>
}

/** An application that does not listen yet. @throws InputError when a TLS file can't be used */
export const buildApi = (parts: ApiParts, options: ApiOptions): Api => {
  const { quota, trace } = parts
  let { requestTimeoutMs } = options
  let isUnix = false
  let cors = createCors(options.cors.origins)
  const corsLines: CorsLines = ({ origin }) => cors?.lines(origin) ?? ''
  const isTrusted = createIsTrusted(options.trustedProxies, () => isUnix)
  const isPlain = createIsPlain(options.trustedProxies.length === 0 ? undefined : isTrusted)
  const clientAddress = createClientAddress(isTrusted, options.clientAddress)
  const transportProblem = createTransportProblem(isPlain)
  const admission = createAdmission({ ...parts, transportProblem })
  const unauthenticated = createUnauthenticatedBytes(options, options.workers, parts.clock, parts.observer)
  let certificate = tlsOptions(options.tls)
  const { app, connections, http2 } = openServer(
    { ...parts, admission, isPlain, clientAddress, corsLines, unauthenticated, certificate },
    options,
  )

  app.decorateRequest('state')
  app.addHook('onRequest', (request, reply, done) => {
    request.state = openState(request.raw)
    follow(request, reply)
    if (trace) beginTrace(trace, request, done)
    else done()
  })
  // The order of the contract: who has no key learns nothing, and every request with one is counted.
  app.addHook('onRequest', (request, reply) => {
    const { raw, state } = request
    if (request.routeOptions.config.isOpen) return openToAll(request, reply)
    if (raw.method === 'OPTIONS' && cors)
      return openToAll(request, reply).then(() => answerPreflight(request, reply))
    return admission.decide(raw, state).then(decision => {
      connections.authenticated(state.connection)
      admission.enforce(raw, state, decision)
    })
  })

  const openState = ({ socket, headers: { traceparent } }: IncomingMessage): RequestState => {
    const arrivedAt = quota.now()
    const connection = connections.of(socket)
    // While it is open: a closed socket does not know any more.
    connection.peer ??= clientAddress.ofPeer(socket.remoteAddress)
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
    if ((length !== undefined || coding !== undefined) && !isHttp2(response))
      connections.bodyMayCome(connection, raw, response)
    const connectionRequest = connection.requestsCame
    // 499: the client disconnected before the response started.
    response.statusCode = 499
    response.on('close', () => {
      connections.requestEnded(connection, raw)
      const { observer } = parts
      const answered: Answered = {
        endpoint: request.routeOptions.config.endpoint ?? 'other',
        status: response.statusCode,
        ms: Math.round((performance.now() - state.startedAt) * 1000) / 1000,
        keyId: state.client?.keyId,
        arrivedAt: state.arrivedAt,
      }
      countAnswer(observer, answered)
      // Most of a hit's own time would go into a line that nobody writes.
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
  /** The headers of every response that Fastify writes. */
  const ownFields = (id: string, state: RequestState, reply: FastifyReply, ends: boolean) => ({
    ...rateLimitFields(rateLimitOf(state)),
    'x-request-id': id,
    date: dateOf(),
    ...(isHttp2(reply.raw) ? {} : connectionFields(!ends && staysAfter(reply))),
  })
  // Whoever needs no key gets no more of the connections than who has a wrong one.
  const openToAll = async ({ raw, state }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const problem = transportProblem(raw)
    if (problem) throw problem
    if (!connections.refused(state.connection)) reply.raw.shouldKeepAlive = false
  }
  const answerPreflight = async (
    { id, raw, state }: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    await unauthenticated.count(0)
    return reply
      .code(204)
      .headers({ ...cors?.preflight(raw.headers.origin), ...ownFields(id, state, reply, false) })
      .send()
  }
  const write = http2 ? writerOfBoth(writerFor(parts)) : writerFor(parts)
  const send = createSend(write, dateOf, staysAfter, corsLines)
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
  // The reference is loaded when it is first asked for.
  for (const path of referencePaths)
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      config: { endpoint: 'reference', isOpen: true },
      handler: async (request, reply) => {
        const { servedReference } = await import('./reference/served.ts')
        const { 'accept-language': language } = request.headers
        const representation = await servedReference(path, request.query as string, language)
        await send(request, reply, representation, unauthenticated.admit)
      },
    })
  for (const [path, location] of referenceRedirects)
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      config: { endpoint: 'reference', isOpen: true },
      handler: async ({ id, raw, state }, reply) => {
        await unauthenticated.count(0)
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
  app.setNotFoundHandler(({ originalUrl }) => {
    if (!isAscii(originalUrl)) throw badRequest(sentences.http.notEncoded)
    const path = pathOf(originalUrl)
    throw isDecodable(path)
      ? notFound(sentences.path.nothing(path, pathsOf(names)))
      : badRequest(sentences.path.notEncoded(path))
  })
  app.setErrorHandler((error, request, reply) => {
    const { state, id } = request
    admission.failed(state, error)
    const problem = problemOf(error, parts.clock.now())
    const isStranger = !state.client && problem.status < 500
    const ends = problem.endsConnection || (isStranger && !connections.refused(state.connection))
    const body = problemBody(problem)
    if (request.raw.method !== 'HEAD') state.bytes = body.length
    if (problem.status >= 500) {
      state.reason = error instanceof AbohawaError ? error.code : 'internal'
      state.cell = failedCellOf(error)
      parts.observer.failed(error, id)
    }
    const answer = (): void =>
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
    const wait = state.client ? undefined : unauthenticated.count(state.bytes)
    if (wait) void wait.then(answer)
    else answer()
  })

  return {
    app,
    server: app.server,
    connections: connections.count,
    certificateExpiresAt: createCertificateExpiry(() => certificate),
    listen: async at => {
      await app.ready()
      app.server.listen({ ...at, backlog: listenBacklog })
      await once(app.server, 'listening')
      // A Unix socket that was inherited has no name here.
      isUnix = typeof (app.server.address() ?? '') === 'string'
    },
    drain: () => {
      isDraining = true
      http2?.drain()
    },
    apply: settings => {
      ;({ requestTimeoutMs } = settings)
      cors = createCors(settings.cors.origins)
      connections.apply(settings)
      unauthenticated.apply(settings)
      Object.assign(app.server, timeoutsOf(requestTimeoutMs))
    },
    prepareCertificate: files => {
      const former = certificate
      const next = former && tlsOptions(files)
      if (!next || (next.cert.equals(former.cert) && next.key.equals(former.key))) return undefined
      return () => {
        certificate = next
        ;(app.server as unknown as TlsServer).setSecureContext(next)
      }
    },
    close: async () => {
      if (app.server.listening) {
        const closed = once(app.server, 'close')
        app.server.close()
        // Requests in flight end by themselves; a connection that never sends a whole one must not keep the process.
        const patience = setTimeout(connections.closeSilent, requestTimeoutMs)
        await closed
        clearTimeout(patience)
      }
      await app.close()
    },
  }
}

const endpointsOf = (parts: ApiParts, keepBytes: number): Readonly<Record<EndpointName, Endpoint>> => {
  const { catalogue } = parts
  const locations = createRenderedLocations(keepBytes)
  return {
    ...weatherEndpointsOf(parts),
    locations: locationsEndpoint(catalogue, locations),
    location: locationEndpoint(catalogue, locations),
  }
}

// Connections that the kernel holds for us before it turns clients away for a second; it may allow fewer (somaxconn).
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

const writerOfBoth =
  (write: WriteReady): WriteReady =>
  (response, status, head, own, stays, body) =>
    isHttp2(response)
      ? writeToStream(response, status, head, own, stays, body)
      : write(response, status, head, own, stays, body)
