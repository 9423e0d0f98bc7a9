// The routes that operators use now and then: how the fleet is, what is cached, purges, keys, what the provider says. Needed long
// after the start and perhaps never, so the listener loads them with the first such request.

import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { quoted } from '../../common/outside-text.ts'
import type { Passthrough } from '../../provider/passthrough.ts'
import type { CacheAdmin } from '../cache-admin.ts'
import type { CacheWarm } from '../cache-warm.ts'
import { type DashboardOptions, registerDashboard } from '../dashboard/dashboard.ts'
import { registerCache } from './cache-routes.ts'
import { type OpsKeys, registerKeys } from './key-routes.ts'
import { registerPassthrough } from './passthrough.ts'
import { answerError, Refusal, type RefusalObserver } from './refusal.ts'
import { takeJsonOnly } from './request-input.ts'
import { longestBodyBytes } from './server.ts'
import { type OpsStatus, registerStatus } from './status-routes.ts'

export type OperatorParts = {
  readonly passthrough: Passthrough
  readonly cache: CacheAdmin & CacheWarm
  readonly keys: OpsKeys
  readonly status: OpsStatus
  readonly dashboard: DashboardOptions
  readonly observer: RefusalObserver
}

/** An app that never listens itself: requests are handed to its `routing`. */
export const buildOperatorRoutes = async ({
  passthrough,
  cache,
  keys,
  status,
  dashboard,
  observer,
}: OperatorParts): Promise<FastifyInstance> => {
  const fail = (error: Error, reply: FastifyReply): void => {
    reply.hijack()
    answerError(error, reply.raw, observer)
  }
  const app = Fastify({
    bodyLimit: longestBodyBytes,
    // The router's own: a path that it can't decode.
    frameworkErrors: (_error, { raw: { url = '' } }, reply) =>
      fail(new Refusal(400, 'path', `the path ${quoted(url)} is not percent-encoded UTF-8`), reply),
  })
  takeJsonOnly(app)
  registerCache(app, cache)
  registerKeys(app, keys)
  registerStatus(app, status)
  registerDashboard(app, dashboard)
  registerPassthrough(app, passthrough)
  app.setErrorHandler((error: Error, _request, reply) => fail(error, reply))
  await app.ready()
  return app
}
