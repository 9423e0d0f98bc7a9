// What operators ask for now and then: what is cached, purges, what the provider says. Needed long after the start and
// perhaps never, so the listener loads it with the first such request.

import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { AbohawaError, messageOf } from '../errors.ts'
import { type OpsCache, registerCache } from './cache-routes.ts'
import { type PassthroughBudget, type PassthroughOptions, registerPassthrough } from './passthrough.ts'

export type OperatorParts = {
  readonly provider: PassthroughOptions
  readonly budget: PassthroughBudget
  readonly cache: OpsCache
}

/** An app that never listens itself: requests are handed to its `routing`. */
export const buildOperatorRoutes = async ({
  provider,
  budget,
  cache,
}: OperatorParts): Promise<FastifyInstance> => {
  const app = Fastify({
    // For a path that is no URL Fastify would send a body of its own.
    frameworkErrors: (error, _request, reply) => refuse(error, reply as unknown as FastifyReply),
  })
  registerCache(app, cache)
  registerPassthrough(app, provider, budget)
  app.setNotFoundHandler((_request, reply) => {
    reply.code(404).send({
      error:
        'there is nothing here; try /livez, /readyz, /metrics, /cache/cell?of=…, POST /cache/purge or /provider/v1/forecast?…',
    })
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => refuse(error, reply))
  await app.ready()
  return app
}

const refuse = (error: Error & { statusCode?: number }, reply: FastifyReply): void => {
  reply.code(statusOf(error)).send({ error: messageOf(error) })
}

const statuses: ReadonlyMap<string, number> = new Map([
  ['bad_input', 400],
  ['store_unavailable', 503],
])

const statusOf = (error: Error & { statusCode?: number }): number =>
  (error instanceof AbohawaError ? statuses.get(error.code) : error.statusCode) ?? 500
