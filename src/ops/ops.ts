// The ops listener, for those who run the gateway: is it alive, does it want traffic, what has it counted, what is
// cached, and what does the provider say. On a port of its own, loopback unless told otherwise; consumers never see it.

import Fastify, { type FastifyInstance } from 'fastify'
import { AbohawaError } from '../errors.ts'
import { type OpsCache, registerCache } from './cache-routes.ts'
import type { Metrics } from './metrics.ts'
import { type PassthroughBudget, type PassthroughOptions, registerPassthrough } from './passthrough.ts'
import type { Readiness } from './readiness.ts'

export type OpsParts = {
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly provider: PassthroughOptions
  readonly budget: PassthroughBudget
  readonly cache: OpsCache
}

export const buildOps = ({ metrics, readiness, provider, budget, cache }: OpsParts): FastifyInstance => {
  const app = Fastify({ forceCloseConnections: true })
  app.get('/livez', async () => ({ status: 'live' }))
  app.get('/readyz', async (_request, reply) => {
    const report = await readiness.report()
    return reply.code(report.status === 'ready' ? 200 : 503).send(report)
  })
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.exposition()),
  )
  registerCache(app, cache)
  registerPassthrough(app, provider, budget)
  app.setNotFoundHandler((_request, reply) => {
    reply.code(404).send({
      error:
        'there is nothing here; try /livez, /readyz, /metrics, /cache/cell?of=…, POST /cache/purge or /provider/v1/forecast?…',
    })
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    reply.code(statusOf(error)).send({ error: error.message })
  })
  return app
}

const statuses: Readonly<Record<string, number>> = { bad_input: 400, store_unavailable: 503 }

const statusOf = (error: Error & { statusCode?: number }): number =>
  (error instanceof AbohawaError ? statuses[error.code] : error.statusCode) ?? 500
