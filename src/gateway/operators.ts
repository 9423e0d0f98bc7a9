// What operators get of a running gateway: metrics, readiness, status, the cache and the keys, on the ops and the health listener.

import type { buildApi } from '../api/api.ts'
import type { Upstream } from '../cache/upstream.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import { type Calendar, minuteMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import type { Reload } from '../config/reload.ts'
import type { Config } from '../config/schema.ts'
import type { createKeyActivities } from '../keys/key-activity.ts'
import type { LoadsByKey } from '../keys/loads-by-key.ts'
import type { Metering } from '../keys/metering.ts'
import { tiersOf } from '../keys/test-keys.ts'
import { createCacheAdmin } from '../operate/cache-admin.ts'
import { createCacheWarm } from '../operate/cache-warm.ts'
import { createCellSurvey } from '../operate/cell-survey.ts'
import { createDayUsage, readUsage } from '../operate/day-usage.ts'
import type { SelfReport } from '../operate/instance-report.ts'
import { createKeyPanel } from '../operate/key-panel.ts'
import { buildHealth, buildOps } from '../operate/listener/listeners.ts'
import { createProbes, createReadiness } from '../operate/listener/probes.ts'
import { readinessDetails } from '../operate/listener/readiness.ts'
import { createStatus } from '../operate/status.ts'
import type { SpendingForecast } from '../provider/forecast.ts'
import type { Store } from '../stores/store.ts'
import { watchCertificate } from '../telemetry/certificate-watch.ts'
import type { createFleetSettings } from '../telemetry/fleet-settings.ts'
import type { History } from '../telemetry/history.ts'
import type { Log } from '../telemetry/log.ts'
import type { watchStoreFile } from '../telemetry/store-file-watch.ts'
import { createStoreWatch } from '../telemetry/store-watch.ts'
import { openListener } from './listeners.ts'
import type { Opened, Telemetry } from './telemetry.ts'

/** What a gateway is made of, as far as operators see it. */
type OperatorsParts = {
  readonly api: ReturnType<typeof buildApi>
  readonly store: Store
  readonly storeFile: ReturnType<typeof watchStoreFile> | undefined
  readonly metering: Metering
  readonly loads: LoadsByKey
  readonly activities: ReturnType<typeof createKeyActivities>
  readonly catalogue: LiveCatalogue
  readonly reload: Reload
  readonly fleetSettings: ReturnType<typeof createFleetSettings>
  readonly upstream: Upstream
  readonly self: SelfReport
  readonly history: History
  readonly forecast: SpendingForecast
  readonly telemetry: Telemetry
  readonly logLinesDropped: () => number
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Log
  readonly opening: AsyncDisposableStack
  readonly opened: Opened
}

export const openOperators = (config: Config, given: OperatorsParts) => {
  const { api, store, metering, catalogue, reload, upstream, telemetry, log, opening, calendar, clock } =
    given
  const { metrics, outages, observers } = telemetry
  const { timelines, account, grid } = upstream
  const tiers = () => tiersOf(reload.running().quota)
  const storeFacts = createStoreWatch(store, log)
  // Also where nobody scrapes: its lines are for the log.
  if (store.kind === 'redis') opening.defer(every(clock, minuteMs / 2, storeFacts))
  const certificate = given.opened(watchCertificate(api.certificateExpiresAt, clock, log))
  const running = { timelines, runs: account.runs, config: reload.running }
  const cache = createCacheAdmin(config, { store, catalogue, clock, running })
  const warming = createCacheWarm(config, { timelines, catalogue, clock })
  opening.defer(async () => void (await warming.stopWarm()))
  const { cellDegrees } = config.cache
  const survey = createCellSurvey({ timelines, catalogue, grid, cellDegrees, clock })
  const dayUsage = createDayUsage({
    ...metering,
    loads: given.loads,
    read: storeNow => readUsage(store, tiers(), calendar, storeNow),
    calendar,
  })
  // What /metrics, /readyz and /status read.
  const parts = {
    ...given,
    ...{ storeFacts, dayUsage, survey, outages, certificate, messagesFault: observers.messagesFault },
    servesTls: config.server.tls.cert !== null,
    maxMemoryBytes: config.cache.memoryBytes,
  }
  metrics.watch(parts)
  const readiness = createReadiness(readinessDetails(parts))
  const probes = createProbes({ metrics, readiness })
  const ops = buildOps(
    {
      probes,
      passthrough: account.passthrough,
      cache: { ...cache, ...warming },
      keys: {
        parts: () => ({ store, tiers: tiers(), calendar, clock }),
        panel: createKeyPanel({
          ...{ store, dayUsage, activities: given.activities, tiers, calendar },
          now: () => metering.storeClock.now(),
        }),
        changed: (action, id) => log.info({ action, id }, 'keys changed through the ops listener'),
      },
      status: { ...createStatus(parts), ...survey },
      dashboard: { timeZone: calendar.zone },
      observer: observers.ops,
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
