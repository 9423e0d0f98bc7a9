// The status report from the store, for the CLI when no gateway answers. What only a running gateway knows is null.

import { readCatalogue } from '../catalogue/live-catalogue.ts'
import { createCalendar, isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { version } from '../common/version.ts'
import type { Config } from '../config/schema.ts'
import { tiersOf } from '../keys/test-keys.ts'
import { createForecast } from '../provider/forecast.ts'
import type { Store } from '../stores/store.ts'
import { createStoreWatch } from '../telemetry/store-watch.ts'
import { budgetOfStore } from './budget-admin.ts'
import { fullestFirst, readUsage } from './day-usage.ts'
import type { KeyNearLimit, StatusReport } from './reports/status-report.ts'
import { budgetStatus, instancesIn, storeStatus } from './status.ts'
import { upstreamStatusesOfStore } from './upstream-status.ts'

/** @throws StoreError */
export const statusOfStore = async (config: Config, store: Store, clock: Clock): Promise<StatusReport> => {
  await store.ping()
  const budget = budgetOfStore(config, { store, clock })
  const now = clock.now()
  const [facts, instances, near, catalogue, upstreams] = await Promise.all([
    createStoreWatch(store, { error: () => {}, warn: () => {}, info: () => {} })(),
    instancesIn(store, now),
    keysNearLimit(config, store),
    catalogueStatus(config),
    upstreamStatusesOfStore(config, store, clock),
    budget.reconcile(),
  ])
  return {
    at: isoOf(now),
    version,
    outages: null,
    instances,
    provider: null,
    budget: { ...budgetStatus(budget.state(), createForecast(), now), demandPerDay: null, stretch: null },
    upstreams,
    run: null,
    cache: null,
    store: storeStatus(facts),
    catalogue,
    certificate: null,
    config: null,
    keysNearLimit: near,
    top: null,
    history: null,
  }
}

const keysNearLimit = async ({ quota }: Config, store: Store): Promise<KeyNearLimit[] | null> => {
  const usage = await readUsage(store, tiersOf(quota), createCalendar(quota.timeZone), await store.time())
  return usage && fullestFirst(usage)
}

const catalogueStatus = async ({ catalogue: { path } }: Config): Promise<StatusReport['catalogue']> => {
  try {
    const { size, checksum } = await readCatalogue(path)
    return { places: size, checksum, fault: null }
  } catch (error) {
    return { places: 0, checksum: '', fault: messageOf(error) }
  }
}
