// /cache/*: explains a cell, purges, refreshes and warms.

import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { InputError } from '../../common/errors.ts'
import type { CacheAdmin } from '../cache-admin.ts'
import type { CacheWarm } from '../cache-warm.ts'
import { post } from './request-input.ts'

const purging = {
  schema: z.strictObject({
    scope: z.string(),
    area: z.boolean().default(false),
    hard: z.boolean().default(false),
    dryRun: z.boolean().default(false),
  }),
  allowed: 'JSON such as {"scope":"district/3026"} (optional: area, hard, dryRun)',
}

const maxPlaces = 100_000
const warming = {
  schema: z.strictObject({
    scope: z.string().optional(),
    top: z.int().min(1).max(maxPlaces).optional(),
    dryRun: z.boolean().default(false),
  }),
  allowed: 'JSON such as {"scope":"all"}, {"top":100} or {} (optional: dryRun)',
}

export const registerCache = (app: FastifyInstance, cache: CacheAdmin & CacheWarm): void => {
  type OfCell = { Querystring: { of?: string | string[] } }
  const targetIn = (path: string, of: string | string[] | undefined): string => {
    if (typeof of === 'string') return of
    throw new InputError(
      of === undefined ? `of is required, such as ${path}?of=district/3026` : 'of must be given only once',
    )
  }
  app.get<OfCell>('/cache/cell', async ({ query: { of } }) => cache.explain(targetIn('/cache/cell', of)))
  app.post<OfCell>('/cache/refresh', { config: { spends: true } }, async ({ query: { of } }) =>
    cache.refresh(targetIn('/cache/refresh', of)),
  )
  post(app, '/cache/purge', purging, async ({ dryRun, ...order }) =>
    dryRun ? cache.pricePurge(order) : cache.purge(order),
  )

  post(app, '/cache/warm', warming, async ({ scope: of, top, dryRun }, reply) => {
    if (dryRun) return cache.planWarm({ of, top })
    const started = await cache.startWarm({ of, top })
    reply.code(202)
    return started
  })
  app.get('/cache/warm', async () => cache.warmState())
  app.delete('/cache/warm', async () => cache.stopWarm())
}
