// The API listener with one key, one place's weather and the embedded store in memory, and the parts it is made of, without
// a provider: what the steps of a hit are measured on.

import { createAnswers } from '../../src/api/answer.ts'
import { buildApi } from '../../src/api/api.ts'
import { openCatalogue } from '../../src/catalogue/live-catalogue.ts'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { createAuthenticate } from '../../src/keys/authentication.ts'
import { createKeyDirectory } from '../../src/keys/key-directory.ts'
import { Meter } from '../../src/keys/meter.ts'
import { createUsageDetail } from '../../src/keys/usage-detail.ts'
import { localDays } from '../../src/keys/window.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createObservers } from '../../src/telemetry/observers.ts'
import { openOutages } from '../../src/telemetry/outages.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { apiOptions } from '../../test/scenarios/api-options.ts'
import { catalogueFile } from '../../test/scenarios/set-up.ts'
import { alwaysFresh, wholeTimeline } from '../../test/scenarios/whole-timeline.ts'

export const setUp = async () => {
  const clock = systemClock
  const store = openEmbeddedStore(':memory:', clock)
  const calendar = createCalendar('Asia/Dhaka')
  const catalogue = await openCatalogue({ path: catalogueFile, pollMs: utcDayMs })
  const tiers = { bench: 1e12 }
  const administration = createAdministration({ store, tiers, calendar, clock })
  const { key } = await administration.createKey('Bench', 'bench')
  const directory = createKeyDirectory(store, clock)
  await directory.readChanges()
  const authenticate = createAuthenticate(directory, tiers, clock)
  const authentication = await authenticate(key)
  if (!('client' in authentication)) throw new Error('the key is refused')
  const meter = new Meter({
    store,
    whenStoreIsDown: 'refuse',
    instances: () => 1,
    windows: localDays(calendar, utcDayMs),
    keepUsageForMs: utcDayMs,
    clock,
    observer: { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
  })
  const quota = meter
  const metrics = createMetrics({ clock, store: 'embedded' })

  const timelines = alwaysFresh(wholeTimeline(clock.now(), calendar), clock.now)
  const weather = { grid: createGrid(0.1), timelines, calendar, hourlyHours: 144 }
  const detail = createUsageDetail(store, calendar, clock)
  const { log } = openLog('silent')
  const outages = openOutages(log, clock, { staleReads: metrics.staleReads, room: () => 'any' })
  const observers = createObservers(metrics, log, outages, clock)
  const observer = { ...observers.api, used: detail.count, access: undefined }
  const api = buildApi(
    {
      authenticate,
      quota,
      usage: store,
      ...weather,
      inMemory: () => undefined,
      catalogue,
      clock,
      observer,
    },
    { ...apiOptions, tls: { ...apiOptions.tls, http2: false } },
  )
  const close = async (): Promise<void> => {
    catalogue.close()
    directory.close()
    await detail.close()
    await meter.close()
    await store.close()
  }
  const { client } = authentication
  const answers = createAnswers(weather)
  const telemetry = { observer, metrics, clock }
  return { api, key, authenticate, client, quota, answers, catalogue, calendar, ...telemetry, close }
}
