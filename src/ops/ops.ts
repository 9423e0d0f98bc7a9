// The ops listener, for those who run the gateway: is it alive, does it want traffic, what has it counted, and what
// does the provider say. On a port of its own, loopback unless told otherwise; consumers never see it.

import Fastify, { type FastifyInstance } from 'fastify'
import type { Metrics } from './metrics.ts'
import { type PassthroughBudget, type PassthroughOptions, registerPassthrough } from './passthrough.ts'
import type { Readiness } from './readiness.ts'

export type OpsParts = {
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly provider: PassthroughOptions
  readonly budget: PassthroughBudget
}

export const buildOps = ({ metrics, readiness, provider, budget }: OpsParts): FastifyInstance => {
  const app = Fastify({ forceCloseConnections: true })
  app.get('/livez', async () => ({ status: 'live' }))
  app.get('/readyz', async (_request, reply) => {
    const report = await readiness.report()
    return reply.code(report.status === 'ready' ? 200 : 503).send(report)
  })
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.exposition()),
  )
  registerPassthrough(app, provider, budget)
  app.setNotFoundHandler((_request, reply) => {
    reply
      .code(404)
      .send({ error: 'there is nothing here; try /livez, /readyz, /metrics or /provider/v1/forecast?…' })
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    reply.code(error.statusCode ?? 500).send({ error: error.message })
  })
  return app
}
