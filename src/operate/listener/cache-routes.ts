// /cache/*: what is cached for a place, purges, and loads of one cell. Reads the requests; what they mean is for those who know the cache.

import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { InputError } from '../../common/errors.ts'
import type { CellReport, PurgeReport } from './cell-report.ts'
import { bodyAs, unreadBody } from './json-body.ts'

/** The operators' actions on the cache, by target; all throw InputError for an invalid target. */
export type OpsCache = {
  explain(of: string): Promise<CellReport>
  /** @param isHard removes the entries; else they are stale */
  purge(of: string, isHard: boolean): Promise<PurgeReport>
  planWarm(order: Warming): Promise<object>
  /** Starts to load what is absent or stale. */
  startWarm(order: Warming): Promise<object>
  warmState(): object
  stopWarm(): Promise<object>
  /** Loads a cell whatever is cached, and explains it then. */
  refresh(of: string): Promise<CellReport>
}

type Warming = { readonly of?: string | undefined; readonly top?: number | undefined }

const order = z.strictObject({ scope: z.string(), hard: z.boolean().default(false) })
const example = 'JSON such as {"scope":"district/3026"}, with "hard":true to remove it'

const maxPlaces = 100_000
const warming = z.strictObject({
  scope: z.string().optional(),
  top: z.int().min(1).max(maxPlaces).optional(),
  dryRun: z.boolean().default(false),
})
const warmingExample = 'JSON such as {"scope":"all"}, {"top":100,"dryRun":true} or {}'

export const registerCache = (app: FastifyInstance, cache: OpsCache): void => {
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
  app.post('/cache/purge', { errorHandler: unreadBody(example) }, async ({ body }) => {
    const { scope, hard } = bodyAs(order, body, example)
    return cache.purge(scope, hard)
  })

  app.post('/cache/warm', { errorHandler: unreadBody(warmingExample) }, async ({ body }, reply) => {
    const data = bodyAs(warming, body, warmingExample)
    const asked = { of: data.scope, top: data.top }
    if (data.dryRun) return cache.planWarm(asked)
    const started = await cache.startWarm(asked)
    reply.code(202)
    return started
  })
  app.get('/cache/warm', async () => cache.warmState())
  app.delete('/cache/warm', async () => cache.stopWarm())
}
