// What operators get of a running gateway, on the ops and the health listener.

import { minuteMs } from '../common/calendar.ts'
import { every } from '../common/clock.ts'
import { openListener } from '../common/listening.ts'
import type { Config } from '../config/schema.ts'
import { buildHealth, buildOps } from '../operate/listener/listeners.ts'
import { createProbes, createReadiness } from '../operate/listener/probes.ts'
import { readinessDetails } from '../operate/listener/readiness.ts'
import { watchCertificate } from '../telemetry/certificate-watch.ts'
import { createStoreWatch } from '../telemetry/store-watch.ts'
import type { OperatorsParts } from './operations.ts'
import type { Opened } from './telemetry.ts'

export const openOperators = (
  config: Config,
  given: OperatorsParts & { readonly opening: AsyncDisposableStack; readonly opened: Opened },
) => {
  const { api, store, telemetry, log, opening, clock } = given
  const { account } = given.upstream
  const { metrics, outages, observers } = telemetry
  const storeFacts = createStoreWatch(store, log)
  // Without a scraper too, for its log lines.
  if (store.kind === 'redis') opening.defer(every(clock, minuteMs / 2, storeFacts))
  const certificate = given.opened(watchCertificate(api.certificateExpiresAt, clock, log))
  // What /metrics, /readyz and /status read.
  const parts = {
    ...given,
    ...{ storeFacts, outages, certificate, messagesFault: observers.messagesFault },
    servesTls: config.server.tls.cert !== null,
    maxMemoryBytes: config.cache.memoryBytes,
  }
  metrics.watch(parts)
  const readiness = createReadiness(readinessDetails(parts))
  const probes = createProbes({ metrics, readiness })
  let stopWarm = (): Promise<unknown> => Promise.resolve()
  opening.defer(async () => void (await stopWarm()))
  const ops = buildOps(
    {
      ...{ probes, passthrough: account.passthrough, observer: observers.ops },
      // Imported here, so that the API answers earlier.
      register: async app => {
        const { registerOperations } = await import('./operations.ts')
        stopWarm = registerOperations(app, config, parts)
      },
    },
    config.ops,
  )
  return {
    readiness,
    /** Opens the ops listener, and the one for health where there is one. @throws InputError */
    listen: async (): Promise<{ readonly opsUrl: string; readonly healthUrl: string | undefined }> => {
      opening.defer(() => ops.close())
      const opsUrl = await openListener(ops, 'ops', config.ops)
      const { host, port } = config.health
      if (port === null) return { opsUrl, healthUrl: undefined }
      const health = buildHealth({ probes, observer: observers.ops }, { ...config.ops, ...config.health })
      opening.defer(() => health.close())
      return { opsUrl, healthUrl: await openListener(health, 'health', { host, port }) }
    },
  }
}
