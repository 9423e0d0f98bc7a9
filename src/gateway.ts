// The composition root: makes every part from the configuration, connects them, opens the listeners and closes everything in
// order.

import { resolve } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { buildApi } from './api/api.ts'
import { type LiveCatalogueOptions, openCatalogue } from './catalogue/live-catalogue.ts'
import { catalogueFile } from './catalogue/snapshot-reader.ts'
import { createCalendar } from './common/calendar.ts'
import type { Clock } from './common/clock.ts'
import { InputError, messageOf } from './common/errors.ts'
import { openListener } from './common/listening.ts'
import type { ReloadOutcome } from './config/reload.ts'
import type { Config } from './config/schema.ts'
import { type ConfigSource, createLiveSettings } from './gateway/live-settings.ts'
import { openOperators } from './gateway/operators.ts'
import { type Opened, openStatusPage, openTelemetry } from './gateway/telemetry.ts'
import { openWeather } from './gateway/weather.ts'
import { createAuthenticate } from './keys/authentication.ts'
import { createKeyActivities } from './keys/key-activity.ts'
import { createKeyDirectory } from './keys/key-directory.ts'
import { openMetering } from './keys/metering.ts'
import { tiersOf } from './keys/test-keys.ts'
import { createUsageDetail } from './keys/usage-detail.ts'
import { openStore } from './stores/open-store.ts'
import { createAccessLog } from './telemetry/access-log.ts'
import type { OpenLog } from './telemetry/log.ts'
import { watchStoreFile } from './telemetry/store-file-watch.ts'
import type { Tracing } from './telemetry/tracing.ts'

export type Gateway = {
  /** Base addresses of the listeners, such as `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly opsUrl: string
  /** Undefined unless `health.port` is set. */
  readonly healthUrl: string | undefined
  /** Resolves when no request to the provider is in progress, apart from those that wait for the next budget window. */
  settled(): Promise<void>
  /** Reads the catalogue's file again now. @throws InputError when it is faulty; the old one stays */
  reloadCatalogue(): Promise<void>
  /** Reads the configuration and applies all of it or nothing. Never rejects: a rejected one is logged and counted. */
  reloadConfig(): Promise<ReloadOutcome>
  /** Turns readiness red, drains traffic, finishes requests in flight, closes everything. */
  close(): Promise<void>
}

// Share of cache memory for rendered lists and places.
const shareOfLists = 1 / 16

export type GatewayParts = Pick<OpenLog, 'log' | 'lines' | 'dropped'> & {
  readonly clock: Clock
  readonly open?: typeof openStore
  readonly tracing?: Tracing | undefined
  /** Where the configuration is read, also on reload; without it, it never changes. */
  readonly source?: ConfigSource
  /** How many gateways `serve --processes` runs on this store and port, this one included. */
  readonly processes?: number
}

/** @throws InputError when something in the configuration can't be used: a file, an address, a store */
export const startGateway = async (config: Config, given: GatewayParts): Promise<Gateway> => {
  const { clock, log, tracing } = given
  // The parts that are open so far: a failing start closes them, the last one first.
  await using opening = new AsyncDisposableStack()
  const opened: Opened = part => opening.adopt(part, async () => void (await part.close()))
  const calendar = createCalendar(config.quota.timeZone)
  const telemetry = openTelemetry(
    config,
    { clock, log, opened },
    {
      room: () => upstream.accounts.next().room,
      // Immediately, so that every instance can show the outage.
      onProvider: () => {
        if (operators.readiness.phase === 'ready') void timelines.sendHeartbeat()
      },
    },
  )
  const { observers } = telemetry
  const liveSettings = createLiveSettings(config, given, observers.reload)
  const { reload } = liveSettings
  const plainStore = opened(await (given.open ?? openStore)(config, clock, observers.store))
  const storeFile =
    plainStore.kind === 'embedded' && config.store.path !== ':memory:'
      ? opened(watchStoreFile(resolve(config.store.path), log))
      : undefined
  const store = tracing?.store(plainStore) ?? plainStore
  const keys = opened(createKeyDirectory(store, clock))
  const activities = createKeyActivities(calendar, clock)
  const usageDetail = opened(createUsageDetail(store, calendar, clock, activities.used))
  const catalogue = await openPlaces(config, observers.catalogue)
  opening.defer(catalogue.close)

  // Release this gateway's share only after its last count was reported.
  let releaseShare = async (): Promise<void> => {}
  opening.defer(() => releaseShare())
  const metering = opened(
    openMetering(
      { ...config.quota, processes: given.processes ?? 1 },
      { store, clock, observer: observers.meter },
    ),
  )
  const weather = openWeather(config, {
    ...{ store, catalogue, metering, usageDetail, reload, telemetry, tracing, clock, log, opened },
    phase: () => operators.readiness.phase,
  })
  const { upstream } = weather
  const { timelines, accounts } = upstream
  releaseShare = async () => {
    if (!accounts.isSettled() || !(await metering.meter.isReported())) return
    // Otherwise it counts as alive for a while, as a killed one does.
    await store.leave(timelines.instance).catch(() => {})
  }

  const authenticate = createAuthenticate(keys, tiersOf(config.quota), clock, config.quota.rates)
  const apiObserver = {
    ...observers.api,
    used: usageDetail.count,
    refused: activities.refused,
    access: accessLogIn(config, given),
  }
  const api = buildApi(
    {
      ...{ authenticate, quota: metering.meter, usage: store },
      ...{ grid: upstream.grid, timelines, inMemory: timelines.peek, calendar, catalogue, clock },
      hourlyHours: config.weather.hourlyHours,
      trace: tracing?.request,
      status: config.server.statusPage
        ? openStatusPage({ store, upstream, telemetry, calendar, clock, opened })
        : undefined,
      observer: apiObserver,
    },
    {
      ...config.server,
      notModifiedCost: config.quota.notModifiedCost,
      clientAddress: config.log.clientAddress,
      keepBytes: Math.floor(config.cache.memoryBytes * shareOfLists),
    },
  )
  const operators = openOperators(config, {
    ...weather,
    ...{ api, store, storeFile, metering, activities, catalogue, reload, telemetry, calendar, clock, log },
    logLinesDropped: given.dropped,
    ...{ opening, opened },
  })
  const watch = liveSettings.watch({
    ...{ api, authenticate, upstream },
    setAccessLog: next => {
      apiObserver.access = accessLogIn(next, given)
    },
  })
  opening.defer(() => watch.close())

  // Opened first and closed last, so that readiness can be checked while the API starts and drains.
  const urls = await operators.listen()
  const [warm] = await Promise.all([upstream.start(), metering.start(), keys.readChanges()])
  log.info(warm, 'cache filled from the shared tier')
  opening.defer(() => api.close())
  const apiUrl = await openListener(api, 'server', config.server)
  operators.readiness.phase = 'ready'
  void timelines.sendHeartbeat()

  const closing = opening.move()
  return {
    apiUrl,
    ...urls,
    settled: accounts.settled,
    reloadCatalogue: catalogue.reload,
    reloadConfig: watch.readNow,
    close: async () => {
      operators.readiness.phase = 'draining'
      void timelines.sendHeartbeat()
      api.drain()
      await pause(reload.running().server.drainForMs)
      // The event loop has accepted the kernel's waiting connections by then.
      await nextTurn()
      await api.close()
      await closing.disposeAsync()
    },
  }
}

const accessLogIn = ({ log: { access } }: Config, { log, lines, clock }: GatewayParts) =>
  access !== false && log.isLevelEnabled('info') ? createAccessLog(Number(access), lines, clock) : undefined

/** @throws InputError */
const openPlaces = (
  { catalogue }: Config,
  observer: Pick<LiveCatalogueOptions, 'onChange' | 'onFault'>,
): ReturnType<typeof openCatalogue> => {
  // The absolute path, so that an error shows where a relative one led.
  const path = catalogueFile(catalogue.path)
  return openCatalogue({ path, pollMs: catalogue.pollEveryMs, ...observer }).catch((cause: unknown) => {
    throw new InputError(`catalogue.path: ${messageOf(cause)}`, { cause })
  })
}
