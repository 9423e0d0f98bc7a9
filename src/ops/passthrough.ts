// /provider/*: what the provider itself says right now, to hold beside what is cached. Sends what forwarded-request.ts
// checked, in turn with the gateway's own requests, and hands on the status and the bytes of the answer alone. What a request
// costs and whether it may be sent is for provider/passthrough.ts.

import type { FastifyInstance } from 'fastify'
import { isoOf } from '../calendar.ts'
import { messageOf } from '../errors.ts'
import { OutOfBudgetError, ProviderError } from '../provider/errors.ts'
import type { Passthrough } from '../provider/passthrough.ts'
import { forwardedRequest } from './forwarded-request.ts'
import { Refusal } from './refusal.ts'

/** Requests of operators that wait or are under way. */
const atOnce = 4

export const registerPassthrough = (app: FastifyInstance, passthrough: Passthrough): void => {
  const { protocol, send } = passthrough
  let underWay = 0

  app.get('/provider/*', async (request, reply) => {
    if (underWay >= atOnce)
      throw new Refusal(
        503,
        'busy',
        `${atOnce} requests to the provider are under way; ask again when one has ended`,
      )
    const { target, weight } = forwardedRequest((request.raw.url ?? '').slice('/provider'.length), protocol)
    const totalTimeoutMs = passthrough.totalTimeoutMs()
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(new OverdueError(totalTimeoutMs)), totalTimeoutMs).unref()
    underWay += 1
    // The answer has ended, or its reader has gone: nothing of it is needed any more.
    reply.raw.once('close', () => {
      underWay -= 1
      clearTimeout(timer)
      ending.abort()
    })
    const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
    try {
      const sent = send({ method, path: target, weight }, ending.signal)
      // A request that waits for its turn is refused in time as well.
      const { status, type, body } = await Promise.race([sent, abortionOf(ending.signal)])
      if (status < 200 || status > 599)
        return reply.code(502).send({ error: `the provider answered with the status ${status}` })
      return reply.code(status).header('content-type', typeOf(type)).send(body)
    } catch (error) {
      if (error instanceof OutOfBudgetError) throw outOfBudget(weight, error)
      if (error instanceof ProviderError && error.code === 'provider_circuit_open') throw circuitOpen(error)
      return reply.code(502).send({ error: `the provider did not answer: ${messageOf(error)}` })
    }
  })
}

class OverdueError extends Error {
  override name = 'OverdueError'

  constructor(totalTimeoutMs: number) {
    super(`its answer was not whole within ${totalTimeoutMs} ms of the request`)
  }
}

/** Rejects with the reason of a signal. */
const abortionOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const outOfBudget = (weight: number, error: ProviderError): Refusal =>
  new Refusal(
    429,
    'budget',
    `the request weighs ${Math.round(weight * 1000) / 1000}, for which the provider's budget has no room${againFrom(error)}`,
  )

const circuitOpen = (error: ProviderError): Refusal =>
  new Refusal(
    503,
    'circuit',
    `the circuit to the provider is not closed, because it has been failing${againFrom(error)}`,
  )

const againFrom = ({ retryAt }: ProviderError): string =>
  retryAt === undefined ? '' : `; ask again from ${isoOf(retryAt)}`

/** The type under which bytes of the provider are shown: none that a browser would run. */
const typeOf = (given: string): string => {
  const type = given.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/json') return 'application/json; charset=utf-8'
  if (type === 'text/csv') return 'text/csv; charset=utf-8'
  return type.startsWith('text/') ? 'text/plain; charset=utf-8' : 'application/octet-stream'
}
