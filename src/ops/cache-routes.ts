// /cache/*: what is cached for a place, purges, and loads of one cell. Reads the requests; what they mean is for those who know the cache.

import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { InputError } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import { Refusal } from './refusal.ts'

/** What is asked about the cache, in the operator's own words; all throw InputError for words that mean nothing. */
export type OpsCache = {
  explain(of: string): Promise<object>
  purge(of: string, soft: boolean): Promise<object>
  /** Loads a cell whatever is cached, and explains it then. */
  refresh(of: string): Promise<object>
}

// Strict, because a misspelt `soft` would purge hard.
const order = z.strictObject({ scope: z.string(), soft: z.boolean().default(false) })
const example = 'JSON such as {"scope":"district/3026","soft":true}'

/** @param longestBodyBytes of an order, which the app sees to */
export const registerCache = (app: FastifyInstance, cache: OpsCache, longestBodyBytes: number): void => {
  type OfCell = { Querystring: { of?: string | string[] } }
  const targetIn = (path: string, of: string | string[] | undefined): string => {
    if (typeof of === 'string') return of
    throw new InputError(
      `of is ${of === undefined ? 'missing' : 'given more than once'}; allowed: one point or place, such as ${path}?of=district/3026`,
    )
  }
  app.get<OfCell>('/cache/cell', async ({ query: { of } }) => cache.explain(targetIn('/cache/cell', of)))
  app.post<OfCell>('/cache/refresh', async ({ query: { of } }) =>
    cache.refresh(targetIn('/cache/refresh', of)),
  )
  // JSON has to say that it is: a page in the operator's browser can't send that here without asking first.
  app.removeContentTypeParser('text/plain')
  app.post(
    '/cache/purge',
    {
      errorHandler: (error, request) => {
        const isUnread = error.code?.startsWith('FST_ERR_CTP_') === true
        if (!isUnread) throw error
        if (error.statusCode === 413)
          throw new Refusal(
            413,
            'body',
            `the body is longer than ${longestBodyBytes} bytes; allowed: ${example}`,
          )
        const type = request.headers['content-type'] ?? 'missing'
        const sentence =
          error.statusCode === 415
            ? `content-type is ${safeText(type, 60)}; allowed: application/json`
            : `the body can't be read; allowed: ${example}`
        throw new Refusal(400, 'body', sentence)
      },
    },
    async ({ body }) => {
      const { data } = order.safeParse(body)
      if (!data) throw new InputError(`the body is ${shown(body)}; allowed: ${example}`)
      return cache.purge(data.scope, data.soft)
    },
  )
}

const shown = (body: unknown): string => safeText(JSON.stringify(body) ?? 'missing', 100)
