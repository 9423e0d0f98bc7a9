// The routes of the ops listener except the probes. Loaded after the start.

import type { FastifyInstance } from 'fastify'
import type { buildApi } from '../api/api.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import type { Calendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Reload } from '../config/reload.ts'
import type { Config } from '../config/schema.ts'
import type { createKeyActivities } from '../keys/key-activity.ts'
import type { Metering } from '../keys/metering.ts'
import { tiersOf } from '../keys/test-keys.ts'
import { createCacheAdmin } from '../operate/cache-admin.ts'
import { createCacheWarm } from '../operate/cache-warm.ts'
import { createCellSurvey } from '../operate/cell-survey.ts'
import { registerDashboard } from '../operate/dashboard/dashboard.ts'
import { createDayUsage, readUsage } from '../operate/day-usage.ts'
import { createKeyPanel } from '../operate/key-panel.ts'
import { registerCache } from '../operate/listener/cache-routes.ts'
import { registerKeys } from '../operate/listener/key-routes.ts'
import { registerPassthrough } from '../operate/listener/passthrough.ts'
import { registerStatus } from '../operate/listener/status-routes.ts'
import { createStatus } from '../operate/status.ts'
import type { Store } from '../stores/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { watchStoreFile } from '../telemetry/store-file-watch.ts'
import type { StoreFacts } from '../telemetry/store-watch.ts'
import type { Telemetry } from './telemetry.ts'
import type { openWeather } from './weather.ts'

/** What a gateway is made of, as far as operators see it. */
export type OperatorsParts = ReturnType<typeof openWeather> & {
  readonly api: ReturnType<typeof buildApi>
  readonly store: Store
  readonly storeFile: ReturnType<typeof watchStoreFile> | undefined
  readonly metering: Metering
  readonly activities: ReturnType<typeof createKeyActivities>
  readonly catalogue: LiveCatalogue
  readonly reload: Reload
  readonly telemetry: Telemetry
  readonly logLinesDropped: () => number
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Log
}

/** Adds the routes. Returns a function that stops warming. */
export const registerOperations = (
  app: FastifyInstance,
  config: Config,
  given: OperatorsParts & { readonly storeFacts: () => Promise<StoreFacts>; readonly maxMemoryBytes: number },
): (() => Promise<unknown>) => {
  const { store, metering, catalogue, reload, upstream, loads, activities, telemetry, calendar, clock, log } =
    given
  const { timelines, account, grid } = upstream
  const tiers = () => tiersOf(reload.running().quota)
  const running = { timelines, runs: account.runs, config: reload.running }
  const cache = createCacheAdmin(config, { store, catalogue, clock, running })
  const warming = createCacheWarm(config, { timelines, catalogue, clock })
  const { cellDegrees } = config.cache
  const survey = createCellSurvey({ timelines, catalogue, grid, cellDegrees, clock })
  const dayUsage = createDayUsage({
    ...metering,
    ...{ loads, calendar },
    read: storeNow => readUsage(store, tiers(), calendar, storeNow),
  })
  registerCache(app, { ...cache, ...warming })
  registerKeys(app, {
    parts: () => ({ store, tiers: tiers(), calendar, clock }),
    panel: createKeyPanel({
      ...{ store, dayUsage, activities, tiers, calendar },
      now: () => metering.storeClock.now(),
    }),
    changed: (action, id) => log.info({ action, id }, 'keys changed through the ops listener'),
  })
  registerStatus(app, { ...createStatus({ ...given, ...telemetry, dayUsage, survey }), ...survey })
  registerDashboard(app, { timeZone: calendar.zone })
  registerPassthrough(app, account.passthrough)
  return warming.stopWarm
}
