// The API listener: the contract and nothing else. Puts admission before every path, known or not, answers, and turns
// whatever goes wrong into one JSON body. Speaks Node's HTTP without a framework in between: what a hit costs is what
// this file and those it calls do.

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import { type AdmissionParts, createAdmission, QuotaExhausted } from './admission.ts'
import { askedIn } from './asked.ts'
import {
  type ConnectionCount,
  type ConnectionLimits,
  type ConnectionObserver,
  trackConnections,
} from './connections.ts'
import { type Exchange, openExchange } from './exchange.ts'
import { createLocationRoutes } from './location-routes.ts'
import { type Problem, problemOf } from './problem.ts'
import { jsonType, sendRepresentation } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { createRespond, keepAliveMs } from './response.ts'
import { type Answer, type EndpointName, type Route, routeOf } from './routes.ts'
import { type TlsFiles, tlsOptions } from './tls.ts'
import { createTransportProblem } from './transport.ts'
import { createUnparsable } from './unparsable.ts'
import { createWeatherRoutes, type WeatherRoutesParts } from './weather-routes.ts'

// Imported by name it would load Node's own client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

/** One answered request, as logs and metrics see it. */
export type Access = {
  readonly requestId: string
  readonly method: string
  /** As it was received: it may hold what no log should tell. */
  readonly url: string
  /** Low in number: the route's name, or `other`. */
  readonly endpoint: Route['endpoint']
  /** 499 when the consumer left before there was one. */
  readonly status: number
  /** By the clock that decides the day of quota, ms since the epoch. */
  readonly arrivedAt: number
  readonly ms: number
  readonly keyId: string | undefined
  /** What the cache did, in the words of `cache-status`, for answers with weather. */
  readonly cache: string | undefined
}

export type ApiObserver = {
  answered(access: Access): void
  /** A request that ended in 500, with what caused it. */
  failed(error: unknown, requestId: string): void
}

export type ApiParts = Omit<AdmissionParts, 'transportProblem' | 'observer'> &
  WeatherRoutesParts & {
    readonly observer: ApiObserver & AdmissionParts['observer'] & ConnectionObserver
    readonly clock: Clock
    /** Whether the process is on its way out: consumers are then asked to open their next connection elsewhere. */
    readonly isDraining: () => boolean
  }

export type ApiOptions = ConnectionLimits & {
  readonly tls: TlsFiles
  readonly trustedProxies: readonly string[]
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
  /** What rendered lists and places may take in memory, in bytes. */
  readonly keepBytes: number
}

export type Api = {
  readonly server: Server
  connections(): ConnectionCount
  listen(at: {
    readonly host: string
    readonly port: number
    /** Whether other processes may listen there too. */
    readonly reusePort?: boolean
  }): Promise<void>
  /** Takes no more connections, and resolves when what is in flight is answered. */
  close(): Promise<void>
}

/** A server that does not listen yet. @throws InputError when a TLS file can't be used */
export const buildApi = (parts: ApiParts, options: ApiOptions): Api => {
  const { clock, quota, observer } = parts
  const admission = createAdmission({
    ...parts,
    transportProblem: createTransportProblem(options.trustedProxies),
  })
  const respond = createRespond(clock, parts.isDraining)
  const { weather, coords, forecast } = createWeatherRoutes(parts)
  const { list, detail } = createLocationRoutes(parts.catalogue, options.keepBytes)
  const answers: Readonly<Record<EndpointName, Answer>> = {
    weather,
    coords,
    forecast,
    locations: list,
    location: detail,
  }

  const fail = (error: unknown, exchange: Exchange): void => {
    admission.failed(exchange, error)
    const problem = problemOf(error, clock.now())
    const isStranger = !exchange.client && problem.status < 500
    if (problem.endsConnection || (isStranger && !connections.refused(exchange.connection)))
      exchange.response.shouldKeepAlive = false
    if (problem.status >= 500) observer.failed(error, exchange.id)
    const body = bodyOf(problem)
    const more = Object.entries(problem.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    respond.with(
      exchange,
      problem.status,
      `content-type: ${jsonType}\r\ncontent-length: ${body.length}\r\ncache-control: no-store\r\n${more.join('')}`,
      body,
    )
  }

  const answer = async (exchange: Exchange, url: string, route: Route): Promise<void> => {
    try {
      const deal = await admission.ask(exchange)
      connections.authenticated(exchange.connection)
      admission.settle(exchange, deal)
      if (route.endpoint === 'other') throw route.problem
      const found = answers[route.endpoint](url, route.first, route.second)
      const sent = sendRepresentation(respond, exchange, found instanceof Promise ? await found : found)
      if (sent) await sent
    } catch (error) {
      fail(error, exchange)
    }
  }

  const listen = (request: IncomingMessage, response: ServerResponse): void => {
    const started = performance.now()
    const { url = '', method = '' } = request
    const arrivedAt = quota.now()
    const asked = askedIn(request.rawHeaders)
    const id = requestIdOf(asked.requestId)
    const connection = connections.of(request.socket)
    const resetsAt = quota.resetAfter(arrivedAt)
    const exchange = openExchange(request, asked, response, connection, id, arrivedAt, resetsAt)
    const route = routeOf(url)
    connections.requestCame(connection, request)
    // What the log tells of a consumer who leaves before there is an answer.
    response.statusCode = 499
    response.on('close', () => {
      connections.requestEnded(connection, request)
      observer.answered({
        requestId: exchange.id,
        method,
        url,
        endpoint: route.endpoint,
        status: response.statusCode,
        arrivedAt,
        ms: Math.round((performance.now() - started) * 1000) / 1000,
        keyId: exchange.client?.keyId,
        cache: exchange.cache,
      })
    })
    void answer(exchange, url, route)
  }

  const http = {
    // A missing host header is answered by us, in JSON, instead of by Node with an empty body.
    requireHostHeader: false,
    requestTimeout: options.requestTimeoutMs,
    // Node looks for requests that take too long only this often, every 30 s unless told otherwise.
    connectionsCheckingInterval: Math.min(1_000, options.requestTimeoutMs),
    keepAliveTimeout: keepAliveMs,
    // What is read ahead of a connection whose requests have to wait.
    highWaterMark: 16 * 1024,
  }
  const tls = tlsOptions(options.tls)
  const server = tls
    ? process
        .getBuiltinModule('node:https')
        .createServer({ ...http, ...tls, handshakeTimeout: options.requestTimeoutMs }, listen)
    : createServer(http, listen)
  const connections = trackConnections(server, options, observer)
  const { refuseUnparsable, refuseConnect } = createUnparsable({
    connections,
    resetsAt: () => quota.resetAfter(quota.now()),
    charge: (key, connection) => admission.charge(key, connection.said, quota.now()),
    bodyOf,
    answered: ({ head: { method, url }, ...told }) =>
      observer.answered({
        ...told,
        method,
        url,
        endpoint: 'other',
        arrivedAt: quota.now(),
        cache: undefined,
      }),
  })
  server.on('clientError', (error, socket) => refuseUnparsable(socket as Socket, error))
  server.on('connect', (_request, socket) => refuseConnect(socket as Socket))
  // An expectation we do not know is no reason for the empty 417 that Node would send.
  server.on('checkExpectation', listen)
  return {
    server,
    connections: connections.count,
    listen: async at => {
      server.listen({ ...at, backlog: listenBacklog })
      await once(server, 'listening')
    },
    close: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      // Requests in flight end by themselves; a connection that never sends a whole one must not keep the process.
      const patience = setTimeout(connections.closeSilent, options.requestTimeoutMs)
      await closed
      clearTimeout(patience)
    },
  }
}

// Connections that the kernel holds for us before it turns clients away for a second; it may allow fewer (somaxconn).
const listenBacklog = 4_096

const bodyOf = (problem: Problem): Buffer => {
  const fields = problem instanceof QuotaExhausted ? problem.fields : {}
  return Buffer.from(JSON.stringify({ error: problem.message, ...fields }))
}
