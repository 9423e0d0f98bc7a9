// /provider/*: what the provider itself says right now, to hold beside what is cached. Adds our key and hands over
// nothing of the caller's but the path and the query; what it costs is taken from the budget like any other request.

import replyFrom from '@fastify/reply-from'
import type { FastifyInstance } from 'fastify'
import { InputError, messageOf } from '../errors.ts'
import { holdsKey } from '../key-redaction.ts'

/** What the provider's limits still have room for, in points. */
export type PassthroughBudget = {
  take(
    points: number,
    purpose: 'refresh',
  ): Promise<{
    points: number
    retryAt: number | null
    done(outcome: 'answered' | 'unsent'): Promise<void>
  }>
}

export type PassthroughOptions = {
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  readonly timeoutMs: number
  readonly bodyTimeoutMs: number
}

export const registerPassthrough = (
  app: FastifyInstance,
  options: PassthroughOptions,
  budget: PassthroughBudget,
): void => {
  const { origin, pathname } = new URL(options.baseUrl)
  const prefix = pathname === '/' ? '' : pathname
  app.register(replyFrom, {
    base: origin,
    undici: {
      connect: { timeout: options.connectTimeoutMs },
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
    },
    disableRequestLogging: true,
  })
  app.get<{ Params: { '*': string } }>('/provider/*', async (request, reply) => {
    const url = request.raw.url ?? ''
    if (holdsKey(url))
      throw new InputError(
        'the URL holds an API key of this gateway; allowed: one without, the provider would log it',
      )
    const points = pointsIn(url)
    const lease = await budget.take(points, 'refresh')
    if (lease.points < points) {
      await lease.done('unsent')
      const until = lease.retryAt === null ? '' : ` until ${new Date(lease.retryAt).toISOString()}`
      return reply
        .code(429)
        .send({ error: `the budget for the provider has no room for ${points} points${until}` })
    }
    reply.raw.once('close', () => void lease.done('answered'))
    return reply.from(`${prefix}/${request.params['*']}`, {
      rewriteRequestHeaders: (_request, { accept, 'accept-encoding': encoding }) => ({
        ...(accept ? { accept } : {}),
        ...(encoding ? { 'accept-encoding': encoding } : {}),
        ...(options.apiKey ? { 'x-api-key': options.apiKey } : {}),
      }),
      onError: (failed, { error }) => {
        failed.code(502).send({ error: `the provider did not answer: ${messageOf(error)}` })
      },
    })
  })
}

// Only forecasts cost anything, by their points.
const pointsIn = (url: string): number => {
  const { pathname, searchParams } = new URL(url, 'http://provider')
  if (!pathname.endsWith('/forecast')) return 0
  return searchParams.getAll('latitude').join(',').split(',').length
}
