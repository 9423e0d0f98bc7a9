// The API listener: the contract and nothing else. Puts admission before every path, known or not, and turns whatever
// goes wrong into one JSON body; what the routes answer is theirs.

import { METHODS } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import { type AdmissionParts, createAdmit, QuotaExhausted } from './admission.ts'
import { registerLocationRoutes } from './location-routes.ts'
import { badRequest, notFound, type Problem, problemOf, quoted } from './problem.ts'
import { jsonType } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { cacheWords } from './response-headers.ts'
import { serverOptions, type TlsFiles } from './tls.ts'
import { refuseConnect, refuseUnparsable } from './unparsable.ts'
import { registerWeatherRoutes, type WeatherRoutesParts } from './weather-routes.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name of the route in logs and metrics. */
    endpoint?: string
  }
}

/** One answered request, as logs and metrics see it. */
export type Access = {
  readonly requestId: string
  readonly method: string
  readonly url: string
  /** Low in number: the route's name, or `other`. */
  readonly endpoint: string
  readonly status: number
  /** Ms since the epoch. */
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

export type ApiParts = Omit<AdmissionParts, 'behindProxies' | 'observer'> &
  WeatherRoutesParts & {
    readonly observer: ApiObserver & AdmissionParts['observer']
    readonly clock: Clock
    /** Whether the process is on its way out: consumers are then asked to open their next connection elsewhere. */
    readonly isDraining: () => boolean
  }

export type ApiOptions = {
  readonly tls: TlsFiles
  readonly trustedProxies: readonly string[]
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs: number
}

export const buildApi = (parts: ApiParts, options: ApiOptions): FastifyInstance => {
  const { clock, quota, observer } = parts
  const behindProxies = options.trustedProxies.length > 0
  const admit = createAdmit({ ...parts, behindProxies })
  const resetsAt = () => quota.resetAfter(quota.now())

  const app = Fastify({
    ...serverOptions(options.tls, options.requestTimeoutMs),
    trustProxy: behindProxies ? [...options.trustedProxies] : false,
    requestTimeout: options.requestTimeoutMs,
    // Requests that arrive while the listener closes are served too: nobody who got a connection is turned away.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Routes take HEAD themselves: Fastify's own HEAD routes give a 304 a length of 0.
    exposeHeadRoutes: false,
    genReqId: request => requestIdOf(request.headers['x-request-id']),
    // The query is read by the routes that have one, strictly.
    routerOptions: { querystringParser: () => ({}), maxParamLength: 16_384 },
    clientErrorHandler: (error, socket) => refuseUnparsable(error, socket, resetsAt()),
    frameworkErrors: async (_error, request, reply) => {
      // A path that can't be decoded reaches no hook, so it passes admission here.
      begin(request, reply)
      try {
        await admit(request, reply)
        const path = quoted(request.raw.url ?? '')
        sendProblem(reply, badRequest(`the path is ${path}; allowed: percent-encoded UTF-8`))
      } catch (refused) {
        fail(refused, request, reply)
      }
    },
  })
  serveEveryMethod(app)
  app.server.on('connect', (_request, socket: Socket) => refuseConnect(socket, resetsAt()))
  // An expectation we do not know is no reason for the empty 417 that Node would send.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  const begin = (request: FastifyRequest, reply: FastifyReply): void => {
    const arrivedAt = clock.now()
    const started = performance.now()
    reply.header('x-request-id', request.id)
    reply.raw.once('close', () =>
      observer.answered({
        requestId: request.id,
        method: request.method,
        url: withoutKeys(request.raw.url ?? ''),
        endpoint: request.routeOptions?.config?.endpoint ?? 'other',
        status: reply.raw.statusCode,
        arrivedAt,
        ms: Math.round((performance.now() - started) * 1000) / 1000,
        keyId: request.client?.keyId,
        cache: request.provenance ? cacheWords(request.provenance) : undefined,
      }),
    )
  }

  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const problem = problemOf(error, clock.now())
    if (problem.status >= 500) observer.failed(error, request.id)
    sendProblem(reply, problem)
  }

  app.decorateRequest('client', null)
  app.addHook('onRequest', async (request, reply) => {
    begin(request, reply)
    await admit(request, reply)
  })
  app.addHook('onSend', async (_request, reply) => {
    if (parts.isDraining()) reply.header('connection', 'close')
  })
  app.setErrorHandler((error, request, reply) => fail(error, request, reply))
  app.setNotFoundHandler(request => {
    throw notFound(`there is nothing at ${quoted((request.raw.url ?? '').split('?')[0] ?? '')}; ${endpoints}`)
  })

  registerLocationRoutes(app, parts.catalogue)
  registerWeatherRoutes(app, parts)
  return app
}

const endpoints =
  'the endpoints are /api/v1/weather/{type}/{id}, /weather/coords/{lat}/{lng}, /forecast/{type}/{id}, /locations and /locations/{type}/{id}'

// Some put their key into the URL by mistake; it must not stand in the log.
const withoutKeys = (url: string): string => url.replaceAll(/svc_live_\w+/g, 'svc_live_…')

const sendProblem = (reply: FastifyReply, problem: Problem): void => {
  const fields = problem instanceof QuotaExhausted ? problem.fields : {}
  reply
    .code(problem.status)
    .headers({ 'cache-control': 'no-store', ...problem.headers })
    .type(jsonType)
    .send(JSON.stringify({ error: problem.message, ...fields }))
}

// Node knows methods that Fastify does not route; unrouted they would pass by admission.
const serveEveryMethod = (app: FastifyInstance): void => {
  const routed = new Set(app.supportedMethods)
  for (const method of METHODS) if (!routed.has(method)) app.addHttpMethod(method)
}
