// Every request from its arrival to its end: the path that the router looks up, its id, its state, and its record for metrics, usage,
// log and trace.

import { AsyncResource } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { closeAfterResponse, mustClose, stopParsing } from '../common/closing.ts'
import { apiPrefix } from '../common/endpoints.ts'
import { holdsKey } from '../common/key-redaction.ts'
import type { Quota } from '../keys/meter.ts'
import type { Admission } from './admission.ts'
import type { ClientAddress } from './connection/client-address.ts'
import { connectionOf, isHttp2 } from './connection/connection.ts'
import type { Connections } from './connection/connections.ts'
import { asHttp1, methodOf } from './connection/http2-request.ts'
import { refuseStream } from './connection/http2-response.ts'
import type { Representation } from './endpoint.ts'
import type { Live } from './representation.ts'
import type { Answered, AnswerObserver, RequestState, RequestTrace } from './request-state.ts'
import { type TraceContext, traceContextOf } from './trace-context.ts'

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** What Node's server calls with each request. @param route Fastify */
export const createListener =
  (connections: Connections, route: Listener): Listener =>
  (request, response) => {
    const connection = connectionOf(request) ?? connections.register(request)
    if (connection.isEnding) {
      if (isHttp2(response)) refuseStream(response)
      else stopParsing(request.socket)
      return
    }
    const { headers } = request
    if (isHttp2(request)) asHttp1(request)
    else if (
      // Undefined for nearly all requests.
      (headers['content-length'] ?? headers['transfer-encoding'] ?? headers.upgrade) !== undefined &&
      mustClose(request)
    ) {
      connection.isEnding = true
      connection.unreadBody = request
      closeAfterResponse(request, response)
    }
    if (connection.requests === 0 || !connections.waits(connection, request, response, route))
      route(request, response)
  }

const validRequestId = /^[A-Za-z0-9._:/+=@-]{1,128}$/

export const newRequestId = ({ headers }: IncomingMessage): string =>
  requestIdOf(headers['x-request-id'] as string | undefined)

/** The consumer's own id when it is valid, else a new one. An id that holds an API key is not: ids are echoed and logged. */
export const requestIdOf = (given: string | undefined): string => {
  if (given !== undefined && validRequestId.test(given) && !holdsKey(given)) return given
  return newId()
}

// 120 bits in 20 characters. A UUID is joined from so many pieces that it takes ten times the memory.
const idBytes = 15
const idPool = Buffer.allocUnsafeSlow(idBytes * 256)
let idsUsed = idPool.length
const newId = (): string => {
  if (idsUsed === idPool.length) {
    randomFillSync(idPool)
    idsUsed = 0
  }
  idsUsed += idBytes
  return idPool.toString('base64url', idsUsed - idBytes, idsUsed)
}

export type RequestParts = {
  readonly connections: Connections
  readonly admission: Admission
  readonly quota: Pick<Quota, 'now' | 'resetAfter'>
  readonly clientAddress: ClientAddress
  readonly live: Pick<Live, 'isUnchangedFree'>
  readonly observer: AnswerObserver
  /** Begins the span of a request, the parent of what `next` starts; undefined where requests are not traced. */
  readonly trace?: ((parent: TraceContext | undefined, next: () => void) => RequestTrace) | undefined
  /** Whether a request of an open route, or by the method OPTIONS, needs no key; answers a preflight. @throws Problem */
  readonly answerWithoutKey: (request: FastifyRequest, reply: FastifyReply) => boolean
}

const running: unique symbol = Symbol('request')
type Followed = ServerResponse & { [running]?: FastifyRequest | undefined }

const createOpenState = ({ connections, quota, clientAddress, live, observer, trace }: RequestParts) => {
  return (request: FastifyRequest): RequestState => {
    const { id, originalUrl, raw } = request
    const { traceparent } = raw.headers
    const { endpoint = 'other', isOpen = false, costOf, unchanged } = request.routeOptions.config
    const arrivedAt = quota.now()
    const connection = connectionOf(raw) ?? connections.register(raw)
    // Before the socket is closed, for it has no address then.
    if (observer.access || trace) connection.peer ??= clientAddress.ofPeer(raw.socket.remoteAddress)
    return {
      requestId: id,
      method: isHttp2(raw) ? methodOf(raw) : (raw.method as string),
      url: originalUrl,
      endpoint,
      isOpen,
      readCost: costOf && (() => costOf(request.query as string)),
      unchanged:
        live.isUnchangedFree && unchanged && raw.headers['if-none-match'] !== undefined
          ? once(() => unchanged(request))
          : undefined,
      cost: undefined,
      connection,
      connectionRequest: 0,
      httpVersion: raw.httpVersion,
      address: undefined,
      startedAt: performance.now(),
      arrivedAt,
      resetsAt: quota.resetAfter(arrivedAt),
      client: null,
      keyId: undefined,
      keyNumber: undefined,
      isTest: false,
      tier: undefined,
      refusedKeyId: undefined,
      remaining: 0,
      isDecided: false,
      cache: undefined,
      cell: undefined,
      // 499: the client disconnected before the response started.
      status: 499,
      ms: 0,
      bytes: 0,
      encoding: undefined,
      notModified: undefined,
      reason: undefined,
      traceId: traceparent === undefined ? undefined : traceContextOf(String(traceparent))?.traceId,
      trace: undefined,
    }
  }
}

/** Follows a request to its end, and records it. */
const createFollow = ({ observer, clientAddress }: RequestParts) => {
  // The close of a response is the one event that comes exactly once, however a request ends.
  const follow = (request: FastifyRequest, response: Followed): void => {
    const { state } = request
    const { connection } = state
    connection.requestsCame += 1
    connection.requests += 1
    state.connectionRequest = connection.requestsCame
    if (state.readCost) connection.lists += 1
    response.statusCode = state.status
    response[running] = request
    response.on('close', onClose)
  }
  function onClose(this: Followed): void {
    const request = this[running]
    if (!request) return
    // The stream of HTTP/2 stays in memory until old objects are collected, and its response with it, but not the request.
    this[running] = undefined
    end(request, this)
  }
  const end = ({ raw, state }: FastifyRequest, response: ServerResponse): void => {
    const { headers } = raw
    const { connection } = state
    connection.requests -= 1
    if (state.readCost) connection.lists -= 1
    connection.afterAnswer?.(connection)
    state.status = response.statusCode
    state.ms = Math.round((performance.now() - state.startedAt) * 1000) / 1000
    countAnswer(observer, state)
    if (!observer.access && !state.trace) return
    const { peer } = connection
    state.keyId ??= state.refusedKeyId
    if (headers['if-none-match'] !== undefined) state.notModified = state.status === 304
    state.address = peer?.isProxy
      ? clientAddress.loggedOf(peer, headers['x-forwarded-for'] as string | undefined)
      : peer?.logged
    observer.access?.(state)
    state.trace?.end(state)
  }

  return follow
}

/** Fastify's hook before every path, known or not. */
export const createRequestHook = (parts: RequestParts) => {
  const { connections, admission, trace, answerWithoutKey } = parts
  const openState = createOpenState(parts)
  const follow = createFollow(parts)
  const admit = (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
    const { raw, state } = request
    // The order of the contract: a client without a key learns nothing, and every request with a key is counted.
    if ((state.isOpen || raw.method === 'OPTIONS') && answerWithoutKey(request, reply)) next()
    else admission.decide(raw, state, connections, next as (error?: unknown) => void)
  }

  return (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
    const state = openState(request)
    request.state = state
    follow(request, reply.raw)
    if (!trace) {
      admit(request, reply, next)
      return
    }
    // Units are granted in batches: bound, so that what follows belongs to the span of this request.
    state.trace = trace(traceContextOf(String(request.raw.headers.traceparent ?? '')), () => {
      const bound = AsyncResource.bind(next)
      try {
        admit(request, reply, bound)
      } catch (error) {
        // The span ends with the request, whatever refuses it.
        bound(error as Error)
      }
    })
    state.traceId = state.trace.traceId
  }
}

const once = (read: () => Representation | undefined): (() => Representation | undefined) => {
  let known: { readonly found: Representation | undefined } | undefined
  return () => {
    known ??= { found: read() }
    return known.found
  }
}

const countAnswer = (observer: AnswerObserver, answered: Readonly<Answered>): void => {
  if (answered.isTest) observer.respondedToTest(answered.status)
  else observer.responded(answered.endpoint, answered.status, answered.ms / 1000)
  // `GET /key` is no usage.
  if (answered.endpoint !== 'key') observer.used(answered)
}

// No URL is longer, so that a path parameter of any length reaches its endpoint.
export const maxUrlLength = 16 * 1024

/** Where people and tools look for the reference first, with its relative path: a proxy may serve it under a prefix. */
export const referenceRedirects: ReadonlyMap<string, string> = new Map([
  ['/', 'docs'],
  ['/docs/', '../docs'],
  ['/openapi.json', `${apiPrefix.slice(1)}/openapi.json`],
])

// No route is there. A path with an empty segment names nothing either; the router would take it for a path parameter.
const noRoute = '//'

/** The path and query to look up; for a URL without a path, one that no route has. */
export const routableUrl = (url: string): string => {
  const relative = withoutOrigin(url)
  const path = withoutQuery(relative)
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('//'))
    return referenceRedirects.has(path) ? relative : noRoute
  // The router takes a # for the end of the path.
  if (path.includes('#') || (path.includes('%') && !isDecodable(path))) return noRoute
  return relative
}

/** The same for a request. Over HTTP/1.1, Node's parser refuses a URL that is not ASCII. */
export const routableUrlOf = (request: IncomingMessage): string => {
  const { url = '' } = request
  return isHttp2(request) && !isAscii(url) ? noRoute : routableUrl(url)
}

/** Whether a URL has only visible ASCII, as HTTP requires. */
export const isAscii = (url: string): boolean => /^[\x21-\x7e]*$/.test(url)

/** Leaves the query to parameters.ts. */
export const rawQuery = (query: string): string => query

/** The path of a URL in origin form or in absolute form. */
export const pathOf = (url: string): string => withoutQuery(withoutOrigin(url))

export const isDecodable = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

const withoutOrigin = (url: string): string =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')

const withoutQuery = (url: string): string => {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
