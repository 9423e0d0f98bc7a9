// /provider/*: what the provider itself says right now, to hold beside what is cached. Sends what forwarded-request.ts
// judged, with our key; takes its weight from the budget like any other request; bounds the answer and hands on its status
// and bytes alone.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Dispatcher, Pool } from 'undici'
import { messageOf } from '../errors.ts'
import type { ProviderProtocol } from '../provider/protocol.ts'
import { outcomeOf, type RequestOutcome } from '../provider/request-cost.ts'
import { validateBeforeSend } from '../provider/validate-before-send.ts'
import { type ForwardedRequest, forwardedRequest } from './forwarded-request.ts'
import { Refusal } from './refusal.ts'

/** What the provider's limits still have room for, in points. */
export type PassthroughBudget = {
  reserve(
    points: number,
    purpose: 'refresh',
  ): Promise<{
    points: number
    retryAt: number | null
    isValid(): boolean
    settle(outcome: RequestOutcome): Promise<void>
  }>
}

export type PassthroughOptions = {
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  /** Until the head of the answer. */
  readonly timeoutMs: number
  readonly bodyTimeoutMs: number
  /** For the whole request. */
  readonly totalTimeoutMs: number
}

export type PassthroughParts = {
  /** As they are with each request; the base URL stays. */
  readonly optionsNow: () => PassthroughOptions
  readonly budget: PassthroughBudget
  readonly protocol: Pick<ProviderProtocol, 'keyHeaders' | 'refusalOf' | 'weightPerCell' | 'passthrough'>
}

const atOnce = 4
const maxBodyBytes = 64 * 1024 * 1024

export const registerPassthrough = (
  app: FastifyInstance,
  { optionsNow, budget, protocol }: PassthroughParts,
): void => {
  const { origin, pathname } = new URL(optionsNow().baseUrl)
  const base = pathname.replace(/\/$/, '')
  const openPool = ({ connectTimeoutMs }: PassthroughOptions): Pool =>
    new Pool(origin, {
      connections: atOnce,
      pipelining: 1,
      connect: { timeout: connectTimeoutMs },
      maxResponseSize: maxBodyBytes,
    })
  let { connectTimeoutMs } = optionsNow()
  let pool = openPool(optionsNow())
  const poolFor = (options: PassthroughOptions): Pool => {
    if (options.connectTimeoutMs !== connectTimeoutMs) {
      // What is under way on it ends first.
      void pool.close().catch(() => {})
      ;({ connectTimeoutMs } = options)
      pool = openPool(options)
    }
    return pool
  }
  app.addHook('onClose', () => pool.destroy())
  let underWay = 0

  const send = (
    method: 'GET' | 'HEAD',
    { target }: ForwardedRequest,
    encoding: string | undefined,
    left: AbortSignal,
    isValid: () => boolean,
  ): Promise<Dispatcher.ResponseData> => {
    const options = optionsNow()
    return poolFor(options)
      .compose(validateBeforeSend(isValid, () => new NotSentError()))
      .request({
        method,
        path: base + target,
        headersTimeout: options.timeoutMs,
        bodyTimeout: options.bodyTimeoutMs,
        headers: {
          ...(options.apiKey ? protocol.keyHeaders(options.apiKey) : {}),
          ...(encoding === undefined ? {} : { 'accept-encoding': encoding }),
        },
        signal: AbortSignal.any([left, AbortSignal.timeout(options.totalTimeoutMs)]),
      })
  }

  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const forwarded = forwardedRequest(
      (request.raw.url ?? '').slice('/provider'.length),
      protocol.passthrough,
    )
    const reservation = await reserve(forwarded.weight)
    let outcome: RequestOutcome = 'unknown'
    const left = new AbortController()
    // The answer has ended, or its reader has gone: nothing of it is needed any more.
    reply.raw.once('close', () => {
      left.abort()
      void reservation.settle(outcome)
    })
    try {
      const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
      const encoding = encodingFor(request.headers['accept-encoding'])
      const { statusCode, headers, body } = await send(
        method,
        forwarded,
        encoding,
        left.signal,
        reservation.isValid,
      )
      // What it cost follows from the status; when to ask again is the operator's to see.
      if (statusCode !== 200) outcome = outcomeOf(protocol.refusalOf(statusCode, '', 0))
      else
        body.once('end', () => {
          outcome = 'answered'
        })
      const fault = faultIn(statusCode, headers)
      if (fault === undefined) return reply.code(statusCode).headers(handedOnHeaders(headers)).send(body)
      body.on('error', () => {}).destroy()
      return reply.code(502).send({ error: fault })
    } catch (cause) {
      if (cause instanceof NotSentError || unconnected.has(codeOf(cause))) outcome = 'unsent'
      return reply.code(502).send({ error: `the provider did not answer: ${reasonOf(cause)}` })
    }
  }

  /** @throws Refusal when the budget has no room for all of it */
  const reserve = async (weight: number) => {
    const points = weight === 0 ? 0 : pointsOf(weight, protocol.weightPerCell)
    const reservation = await budget.reserve(points, 'refresh')
    if (reservation.points >= points) return reservation
    await reservation.settle('unsent')
    const until =
      reservation.retryAt === null ? '' : `; ask again from ${new Date(reservation.retryAt).toISOString()}`
    const shown = Math.round(weight * 1000) / 1000
    throw new Refusal(
      429,
      'budget',
      `the request weighs ${shown}, for which the provider's budget has no room${until}`,
    )
  }

  app.get('/provider/*', async (request, reply) => {
    if (underWay >= atOnce)
      throw new Refusal(
        503,
        'busy',
        `${atOnce} requests to the provider are under way; ask again when one has ended`,
      )
    underWay += 1
    reply.raw.once('close', () => {
      underWay -= 1
    })
    return answer(request, reply)
  })
}

class NotSentError extends Error {
  override name = 'NotSentError'
  override message = 'the gateway stood still before it could ask; ask again'
}

/** The whole points that a weight is, rounded up; at least 1. */
const pointsOf = (weight: number, weightPerPoint: number): number =>
  // A weight that is whole points may come out of the division a little above them.
  Math.max(1, Math.ceil(weight / weightPerPoint - 1e-9))

// What the system says when no connection came about, so that nothing was asked.
const unconnected = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

const codeOf = (cause: unknown): string => String((cause as { code?: unknown } | null)?.code ?? '')

// Several addresses of one name, none of which could be reached, come without a sentence.
const reasonOf = (cause: unknown): string => messageOf(cause) || codeOf(cause)

const encodings = ['gzip', 'br', 'deflate']

/** Of the encodings that the caller takes, the first that we pass on; nothing else of the header leaves. */
const encodingFor = (accepted: string | string[] | undefined): string | undefined => {
  const given = String(accepted ?? '').toLowerCase()
  return encodings.find(encoding => new RegExp(`(^|[\\s,])${encoding}([\\s,]|$)`).test(given))
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

const faultIn = (status: number, headers: Headers): string | undefined => {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && !encodings.includes(String(encoding).toLowerCase()))
    return 'the provider answered in an encoding that nobody asked for'
  if (Number(headers['content-length'] ?? 0) > maxBodyBytes)
    return `the provider's answer is longer than ${maxBodyBytes} bytes`
  return status < 200 || status > 599 ? `the provider answered with the status ${status}` : undefined
}

// By name and in our words: what else the provider says of its answer would be said under our origin.
const handedOnHeaders = (headers: Headers): Record<string, string> => ({
  'content-type': typeOf(String(headers['content-type'] ?? '')),
  ...(headers['content-encoding'] === undefined
    ? {}
    : { 'content-encoding': String(headers['content-encoding']).toLowerCase() }),
})

/** The type under which bytes of the provider are shown: none that a browser would run. */
const typeOf = (given: string): string => {
  const type = given.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/json') return 'application/json; charset=utf-8'
  if (type === 'text/csv') return 'text/csv; charset=utf-8'
  return type.startsWith('text/') ? 'text/plain; charset=utf-8' : 'application/octet-stream'
}
