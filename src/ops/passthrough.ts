// /provider/*: what the provider itself says right now, to hold beside what is cached. Adds our key and hands over
// nothing of the caller's but the path and the query.

import replyFrom from '@fastify/reply-from'
import type { FastifyInstance } from 'fastify'

export type PassthroughOptions = {
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  readonly timeoutMs: number
  readonly bodyTimeoutMs: number
}

export const registerPassthrough = (app: FastifyInstance, options: PassthroughOptions): void => {
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
  app.get<{ Params: { '*': string } }>('/provider/*', (request, reply) =>
    reply.from(`${prefix}/${request.params['*']}`, {
      rewriteRequestHeaders: (_request, { accept, 'accept-encoding': encoding }) => ({
        ...(accept ? { accept } : {}),
        ...(encoding ? { 'accept-encoding': encoding } : {}),
        ...(options.apiKey ? { 'x-api-key': options.apiKey } : {}),
      }),
      onError: (failed, { error }) => {
        failed.code(502).send({ error: `the provider did not answer: ${error.message}` })
      },
    }),
  )
}
