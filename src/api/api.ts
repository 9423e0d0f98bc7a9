// The API listener, a Fastify application: hooks admit a request before every path, known or not; endpoints answer; the error handler
// turns every error into the contract's JSON.

import type { IncomingMessage, Server } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../common/clock.ts'
import { apiPrefix, type EndpointName, endpoints, isList, keyPath, templateOf } from '../common/endpoints.ts'
import { AbohawaError, codeOf } from '../common/errors.ts'
import type { TlsSettings } from '../config/tls.ts'
import type { Quota } from '../keys/meter.ts'
import type { ServiceStatus } from '../telemetry/service-status.ts'
import type { Cell } from '../weather/cell.ts'
import { type AdmissionParts, createAdmission, unitsOf } from './admission.ts'
import type { CellResult } from './answer.ts'
import { chooseWriter } from './connection/choose-writer.ts'
import { type AddressForm, createClientAddress, createIsTrusted } from './connection/client-address.ts'
import { headOf, isHttp2, keptLines, type WriteReady } from './connection/connection.ts'
import type { ConnectionCount, ConnectionObserver, Connections } from './connection/connections.ts'
import { writerOfBoth } from './connection/http2-response.ts'
import { createCors, preflightLines } from './cors.ts'
import { createFixedWeather } from './fixed-weather.ts'
import { createKeyEndpoint, type KeyEndpointParts } from './key-endpoint.ts'
import { createRenderedLocations, locationEndpointsOf } from './location-endpoints.ts'
import { costOfList } from './place-list.ts'
import {
  badRequest,
  createDocUrl,
  type DocUrl,
  notFound,
  Problem,
  problemOf,
  problemResponse,
} from './problem.ts'
import { routeReference } from './reference-routes.ts'
import { createTransport, type Transport } from './refusals.ts'
import { failedCellOf } from './rendered-weather.ts'
import { createSend, handlerOf, type Live, type Send, unchangedOf } from './representation.ts'
import { createRequestHook, isAscii, isDecodable, pathOf, type RequestParts } from './request.ts'
import type { AnswerObserver } from './request-state.ts'
import { sentences } from './sentences.ts'
import { type OpenServer, openServer, type ServerOptions } from './server.ts'
import { createPlaces, type WeatherEndpointParts, weatherEndpointsOf } from './weather-endpoints.ts'

type ApiObserver = AnswerObserver & {
  readonly refused?: (keyId: string, code: string) => void
  failed(error: unknown, requestId: string): void
  /** Hits are written header by header, because Node's private fields have changed. */
  writerFellBack(reason: string): void
}

export type ApiParts = Omit<AdmissionParts, 'observer'> &
  WeatherEndpointParts &
  KeyEndpointParts &
  Pick<RequestParts, 'trace'> & {
    readonly observer: ApiObserver & AdmissionParts['observer'] & ConnectionObserver
    readonly clock: Clock
    /** What memory holds of a cell that can be answered with, without a trace; begins no load. */
    readonly inMemory: (cell: Cell) => CellResult | undefined
    /** How the service is, for the status page; undefined where there is none. */
    readonly status?: (() => Promise<ServiceStatus>) | undefined
    /** By default the writer that is right on this Node. */
    readonly writeReady?: WriteReady
  }

type ApiSettings = ServerOptions & {
  /** The origins whose web pages may read the responses; `*` is any. */
  readonly cors: { readonly origins: readonly string[] }
  /** The share of its units that a request costs whose answer is 304. */
  readonly notModifiedCost: number
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

export type Api = Pick<OpenServer, 'certificateExpiresAt' | 'prepareTls' | 'listen' | 'close'> & {
  /** `inject` sends it requests without a socket. */
  readonly app: FastifyInstance
  readonly server: Server
  connections(): ConnectionCount
  /** The process is stopping: from now on responses ask consumers to open their next connection elsewhere. */
  drain(): void
  apply(settings: ApiSettings): void
}

/** An application that does not listen yet. @throws InputError when a TLS file can't be used */
export const buildApi = (parts: ApiParts, options: ApiOptions): Api => {
  const { quota, clock, observer, trace } = parts
  const live: Live = {
    cors: createCors(options.cors.origins),
    keptLines: keptLines(options.keepAliveTimeoutMs),
    isUnchangedFree: options.notModifiedCost === 0,
    isDraining: false,
    notModified: givingBack(quota, options.notModifiedCost),
  }
  const isTrusted = createIsTrusted(options.trustedProxies)
  const clientAddress = createClientAddress(isTrusted, options.clientAddress)
  const transport = createTransport(options.trustedProxies.length > 0 ? isTrusted : undefined)
  const admission = createAdmission(parts, transport, clientAddress.ofRequest)
  const docUrl = createDocUrl(options.publicUrl)
  const server = openServer({ quota, observer, isTrusted, clientAddress, live, docUrl }, options)
  const { app, connections } = server
  const write = writerFor(parts)
  const send = createSend(server.isHttp2 ? writerOfBoth(write) : write, clock, live)

  const answerWithoutKey = createAnswerWithoutKey(transport, connections, send, live)
  const hook = createRequestHook({
    connections,
    admission,
    quota,
    clientAddress,
    live,
    observer,
    trace,
    answerWithoutKey,
  })
  app.decorateRequest('state')
  app.addHook('onRequest', hook)

  const names = routeEndpoints(app, send, parts, docUrl, options.keepBytes)
  routeReference(app, send, clientAddress, {
    publicUrl: options.publicUrl,
    originOf: transport.originOf,
    status: parts.status && { read: parts.status, timeZone: parts.calendar.zone, clock },
  })
  app.setNotFoundHandler(request => {
    throw nothingAt(request, names)
  })
  app.setErrorHandler((error, request, reply) => {
    const { state, id, raw } = request
    admission.failed(state, error)
    const problem = problemOf(error, clock.now())
    const keyId = state.keyId ?? state.refusedKeyId
    if (keyId !== undefined) observer.refused?.(keyId, problem.code)
    const isUnauthenticated = !state.client && problem.status < 500
    if (problem.endsConnection && !isHttp2(raw)) connections.endsWith(state.connection)
    const stays = !isUnauthenticated || connections.refused(state.connection)
    // A requested test error is no failure.
    if (problem.status >= 500 && problem !== error) {
      state.reason = codeOf(error)
      state.cell = failedCellOf(error)
      observer.failed(error, id)
    }
    const { lines, body } = problemResponse(problem, docUrl)
    const { status, endsConnection } = problem
    send.ready(request, reply, status, headOf(status, lines), [body], endsConnection || !stays)
  })

  return {
    ...server,
    server: app.server,
    connections: connections.count,
    drain: () => {
      live.isDraining = true
      connections.drain()
    },
    apply: settings => {
      live.keptLines = keptLines(settings.keepAliveTimeoutMs)
      live.cors = createCors(settings.cors.origins)
      live.isUnchangedFree = settings.notModifiedCost === 0
      live.notModified = givingBack(quota, settings.notModifiedCost)
      server.apply(settings)
    },
  }
}

/** Puts the endpoints at their paths. Returns the names of those with weather or places. */
const routeEndpoints = (
  app: FastifyInstance,
  send: Send,
  parts: ApiParts,
  docUrl: DocUrl,
  keepBytes: number,
): readonly EndpointName[] => {
  const { grid, catalogue } = parts
  const findPlace = createPlaces(catalogue, ({ latitude, longitude }) => grid.cellOf(latitude, longitude))
  const ofWeather = { ...parts, docUrl, findPlace }
  const { rendered, held: heldLists } = createRenderedLocations(keepBytes)
  const endpointsWith = (timelines: WeatherEndpointParts['timelines'], lists = rendered) => ({
    ...weatherEndpointsOf({ ...ofWeather, timelines }),
    ...locationEndpointsOf(catalogue, rendered, lists),
  })
  const heldWith = (inMemory: ApiParts['inMemory']) => endpointsWith(heldOnly(inMemory), heldLists)
  const fixed = createFixedWeather(parts)
  const [answers, held] = [endpointsWith(parts.timelines), heldWith(parts.inMemory)]
  const [ofTests, heldOfTests] = [endpointsWith(fixed), heldWith(fixed.inMemory)]
  const names = Object.keys(answers) as EndpointName[]
  for (const name of names) {
    const handler = handlerOf(answers[name], ofTests[name], send)
    const unchanged = unchangedOf(held[name], answers[name])
    const unchangedTest = unchangedOf(heldOfTests[name], ofTests[name])
    const config = {
      endpoint: name,
      unchanged: (request: FastifyRequest) =>
        request.state.isTest ? unchangedTest(request) : unchanged(request),
    }
    app.route({
      method: ['GET', 'HEAD'],
      url: apiPrefix + endpoints[name].path,
      config: isList(name) ? { ...config, costOf: costOfList(name) } : config,
      handler: isList(name)
        ? (request, reply) => {
            if (request.state.cost !== undefined) return handler(request, reply)
            request.state.endpoint = 'other'
            throw nothingAt(request, names)
          }
        : handler,
    })
  }
  app.route({
    method: ['GET', 'HEAD'],
    url: apiPrefix + keyPath,
    config: { endpoint: 'key' },
    handler: createKeyEndpoint(parts, send),
  })
  return names
}

/** Whether a request needs no key: one of an open route, or a preflight, which it answers. */
const createAnswerWithoutKey = (transport: Transport, connections: Connections, send: Send, live: Live) => {
  const answerPreflight = (request: FastifyRequest, reply: FastifyReply): void => {
    const { origin } = request.raw.headers
    const isAllowed = live.cors?.allows(origin) ?? false
    if (origin !== undefined && !isAllowed) throw new Problem(403, sentences.originNotAllowed(origin))
    send.ready(request, reply, 204, headOf(204, isAllowed ? preflightLines : ''), undefined, false)
  }

  return (request: FastifyRequest, reply: FastifyReply): boolean => {
    const { raw, state } = request
    if (!state.isOpen && !live.cors && !isPreflight(raw)) return false
    const problem = transport.transportProblem(raw)
    if (problem) throw problem
    // A client without a key has the limits of one with a wrong key, and counts before its next request of a pipeline comes.
    if (!connections.refused(state.connection)) reply.raw.shouldKeepAlive = false
    if (!state.isOpen) answerPreflight(request, reply)
    return true
  }
}

/** Sent by browsers before a request of a web page, without its key. */
const isPreflight = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined && headers['access-control-request-method'] !== undefined

const givingBack = (quota: Quota, notModifiedCost: number): Live['notModified'] =>
  notModifiedCost === 1
    ? undefined
    : state => {
        const { client, arrivedAt } = state
        // Open pages have no key.
        if (!client) return
        const units = quota.refund(client, arrivedAt, unitsOf(state) * (1 - notModifiedCost))
        state.remaining += units
        if (state.cost !== undefined) state.cost -= units
      }

const heldOnly = (inMemory: ApiParts['inMemory']): WeatherEndpointParts['timelines'] => ({
  read: cell => {
    const found = inMemory(cell)
    if (!found) throw new AbohawaError('not_in_memory', `memory does not hold ${cell.id}`)
    return found
  },
})

const nothingAt = (
  { originalUrl }: Pick<FastifyRequest, 'originalUrl'>,
  names: readonly EndpointName[],
): Problem => {
  if (!isAscii(originalUrl)) return badRequest(sentences.http.notEncoded)
  const path = pathOf(originalUrl)
  if (path === '') return badRequest(sentences.path.missing(originalUrl))
  return isDecodable(path)
    ? notFound(sentences.path.nothing(path, pathsOf(names)))
    : badRequest(sentences.path.notEncoded(path))
}

const pathsOf = (names: readonly EndpointName[]): string => {
  const [first = '', ...others] = names.map(name => templateOf(name) + (isList(name) ? '?places=' : ''))
  const all = [apiPrefix + first, ...others, keyPath]
  return `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`
}

const writerFor = ({ writeReady, observer }: ApiParts): WriteReady => {
  if (writeReady) return writeReady
  const { write, fault } = chooseWriter()
  if (fault !== undefined) observer.writerFellBack(fault)
  return write
}
