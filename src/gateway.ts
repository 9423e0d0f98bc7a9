// The composition root: makes every part from the configuration, introduces the parts to one another, opens the
// listeners and closes everything in order. Nothing is decided here that a part could decide. Longer than 300 lines, because
// every part is connected here.

import type { Server } from 'node:net'
import { resolve } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { buildApi } from './api/api.ts'
import { openUpstream } from './cache/upstream.ts'
import { openCatalogue } from './catalogue/live-catalogue.ts'
import { catalogueFile } from './catalogue/snapshot-reader.ts'
import { createCalendar, minuteMs } from './common/calendar.ts'
import { type Clock, every } from './common/clock.ts'
import { InputError, messageOf } from './common/errors.ts'
import { type Place, unusablePlace } from './common/listening.ts'
import { requireServable } from './config/certificate-check.ts'
import { filesNamedIn, type LoadedConfig } from './config/load.ts'
import { createReload, type ReloadOutcome } from './config/reload.ts'
import type { Config } from './config/schema.ts'
import { upstreamNamesIn } from './config/upstreams.ts'
import { watchFiles } from './config/watch.ts'
import { createAuthenticate } from './keys/authentication.ts'
import { createKeyActivities } from './keys/key-activity.ts'
import { createKeyDirectory } from './keys/key-directory.ts'
import { createLoadsByKey } from './keys/loads-by-key.ts'
import { openMetering } from './keys/metering.ts'
import { tiersOf } from './keys/test-keys.ts'
import { createUsageDetail } from './keys/usage-detail.ts'
import { createCacheAdmin } from './operate/cache-admin.ts'
import { createCacheWarm } from './operate/cache-warm.ts'
import { createCellSurvey } from './operate/cell-survey.ts'
import { createDayUsage, readUsage } from './operate/day-usage.ts'
import { createFleetOutages } from './operate/fleet-outages.ts'
import { createSelfReport, reportText } from './operate/instance-report.ts'
import { createKeyPanel } from './operate/key-panel.ts'
import { buildHealth, buildOps } from './operate/listener/listeners.ts'
import { createProbes, createReadiness } from './operate/listener/probes.ts'
import { readinessDetails } from './operate/listener/readiness.ts'
import { createStatus } from './operate/status.ts'
import { settingsThatNeedRestart } from './provider/accounts.ts'
import { createForecast } from './provider/forecast.ts'
import { openStore } from './stores/open-store.ts'
import { createAccessLog } from './telemetry/access-log.ts'
import { watchBudget } from './telemetry/budget-watch.ts'
import { watchCertificate } from './telemetry/certificate-watch.ts'
import { createFleetSettings } from './telemetry/fleet-settings.ts'
import { createHistory } from './telemetry/history.ts'
import type { OpenLog } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { createObservers } from './telemetry/observers.ts'
import { openOutages } from './telemetry/outages.ts'
import { openServiceDays } from './telemetry/service-days.ts'
import { createServiceStatus } from './telemetry/service-status.ts'
import { watchStoreFile } from './telemetry/store-file-watch.ts'
import { createStoreWatch } from './telemetry/store-watch.ts'
import type { Tracing } from './telemetry/tracing.ts'

export type Gateway = {
  /** Base addresses of the listeners, such as `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly opsUrl: string
  /** Undefined unless `health.port` is set. */
  readonly healthUrl: string | undefined
  /** Resolves when no request to the provider is under way; those that wait for the budget's next window do not count. */
  settled(): Promise<void>
  /** Reads the catalogue's file again now. @throws InputError when it is faulty; the old one stays */
  reloadCatalogue(): Promise<void>
  /** Reads the configuration now and applies it, whole or not at all. Never rejects: a refusal is logged and counted. */
  reloadConfig(): Promise<ReloadOutcome>
  /** Turns readiness red, waits for traffic to go elsewhere, finishes what is in flight, lets go of everything. */
  close(): Promise<void>
}

// Of the memory of the cache, what rendered lists and places may take.
const shareOfLists = 1 / 16

export type GatewayParts = Pick<OpenLog, 'log' | 'lines' | 'dropped'> & {
  readonly clock: Clock
  readonly open?: typeof openStore
  readonly tracing?: Tracing | undefined
  /** Where the configuration comes from, and comes from again; without it, it stays as it is. `read` throws ConfigError. */
  readonly source?: { read(): LoadedConfig; readonly files: readonly string[] }
  /** How many gateways `serve --processes` runs on this store and port, this one included. */
  readonly processes?: number
}

/** @throws InputError when something in the configuration can't be used: a file, an address, a store */
export const startGateway = async (
  config: Config,
  { clock, log, lines, dropped, open = openStore, source, tracing, processes = 1 }: GatewayParts,
): Promise<Gateway> => {
  // The parts that are open so far: a failing start closes them, the last one first.
  await using opening = new AsyncDisposableStack()
  const opened = <Part extends { close(): unknown }>(part: Part): Part =>
    opening.adopt(part, async () => void (await part.close()))
  const metrics = createMetrics({
    clock,
    store: config.redis.url === null ? 'embedded' : 'redis',
    upstreams: config.provider.fallbacks.length > 0 ? upstreamNamesIn(config) : [],
  })
  const accessLogIn = ({ log: settings }: Config) =>
    settings.access && log.isLevelEnabled('info') ? createAccessLog(settings, lines, clock) : undefined
  const calendar = createCalendar(config.quota.timeZone)
  // At once, so that every instance can show an outage of one.
  const onProvider = (): void => {
    if (readiness.phase === 'ready') void timelines.sendHeartbeat()
  }
  const room = () => upstream.accounts.next().room
  const outages = opened(openOutages(log, clock, { staleReads: metrics.staleReads, room, onProvider }))
  const observers = createObservers(metrics, log, outages, clock)
  const reload = createReload({
    running: config,
    read: source?.read ?? (() => ({ config, origins: new Map() })),
    needRestart: next => settingsThatNeedRestart(config, next),
    prepare: async ({ server }) => {
      const { tls } = server
      const change = api.prepareTls(tls)
      if (!change) return []
      const isRenewal = change.replaced.includes('certificate')
      const faults = isRenewal ? await requireServable(server, clock.now()) : []
      return [
        change.use,
        ...change.replaced.map(what => () => log.info(tls, `${what} replaced`)),
        ...faults.map(({ detail, fix }) => () => {
          log.warn({ reason: detail, next: fix }, 'the new certificate has a fault')
        }),
      ]
    },
    apply: (next, isChanged) => {
      if (isChanged('log.')) {
        log.level = next.log.level
        apiObserver.access = accessLogIn(next)
      }
      if (isChanged('quota.')) authenticate.applyTiers(tiersOf(next.quota), next.quota.rates)
      if (isChanged('provider.')) upstream.applyBudget(next)
      if (isChanged('cache.')) upstream.applyFreshness(next)
      if (isChanged('server.') || isChanged('quota.')) api.apply({ ...next.server, ...next.quota })
    },
    clock,
    observer: observers.reload,
  })
  const plainStore = opened(await open(config, clock, observers.store))
  const storeFile =
    plainStore.kind === 'embedded' && config.store.path !== ':memory:'
      ? opened(watchStoreFile(resolve(config.store.path), log))
      : undefined
  const store = tracing?.store(plainStore) ?? plainStore
  const keys = opened(createKeyDirectory(store, clock))
  const activities = createKeyActivities(calendar, clock)
  const usageDetail = opened(createUsageDetail(store, calendar, clock, activities.used))

  // Whole, so that an error says where a relative path was looked for.
  const path = catalogueFile(config.catalogue.path)
  const pollMs = config.catalogue.pollEveryMs
  const catalogue = await openCatalogue({ path, pollMs, ...observers.catalogue }).catch((cause: unknown) => {
    throw new InputError(`catalogue.path: ${messageOf(cause)}`, { cause })
  })
  opening.defer(catalogue.close)

  // Behind the last count of either: only then may another gateway have this one's part of what is shared.
  let leave = async (): Promise<void> => {}
  opening.defer(() => leave())
  const meterParts = { store, clock, observer: observers.meter }
  const metering = opened(openMetering({ ...config.quota, processes }, meterParts))
  const forecast = createForecast()
  const recordSpending = () => forecast.record(budget.state().windows, clock.now())
  const history = opened(createHistory(metrics.totals, clock, recordSpending))
  const self = createSelfReport({
    phase: () => readiness.phase,
    reload,
    outages,
    circuit: () => upstream.account.breaker.state().state,
    history,
    clock,
  })
  const fleetSettings = createFleetSettings(clock, log)
  const loads = createLoadsByKey({
    now: clock.now,
    weightPerCell: () => account.protocol.weightPerCell,
    limitOfDay: () => budget.state().windows.find(({ name }) => name === 'day')?.limit,
    countLoad: usageDetail.countLoad,
  })
  const upstream = openUpstream(config, {
    store,
    catalogue,
    clock,
    instances: metering.instances,
    tracing,
    settings: reload.hash,
    report: () => reportText(self),
    observer: {
      ...observers.upstream,
      loaded: loads.record,
      onHeartbeat: fleet => {
        metrics.heartbeat(fleet)
        metering.onHeartbeat(fleet.instances)
        fleetSettings.onHeartbeat(fleet.variants)
      },
    },
  })
  opening.defer(upstream.close)
  const { grid, timelines, account, accounts } = upstream
  const { budget, runs } = account
  leave = async () => {
    if (!accounts.isSettled() || !(await metering.meter.isReported())) return
    // It counts as alive for a while then, as one that was killed.
    await store.leave(timelines.instance).catch(() => {})
  }
  for (const { name, account } of accounts.all)
    opened(
      watchBudget(account.budget.state, clock.now, name === undefined ? log : log.child({ upstream: name })),
    )

  const authenticate = createAuthenticate(keys, tiersOf(config.quota), clock, config.quota.rates)
  const status = config.server.statusPage
    ? createServiceStatus({
        timelines,
        run: () => (accounts.next().upstream?.account ?? account).runs?.newestRead(),
        outages: createFleetOutages(store, timelines.instance, outages),
        days: opened(
          openServiceDays({
            store,
            instance: timelines.instance,
            answered: metrics.answered,
            outages: outages.open,
            calendar,
            clock,
          }),
        ),
        clock,
      })
    : undefined
  const apiObserver = {
    ...observers.api,
    used: usageDetail.count,
    refused: activities.refused,
    access: accessLogIn(config),
  }
  const api = buildApi(
    {
      authenticate,
      quota: metering.quota,
      rates: metering.rates,
      usage: store,
      grid,
      timelines,
      inMemory: timelines.peek,
      calendar,
      hourlyHours: config.weather.hourlyHours,
      catalogue,
      clock,
      trace: tracing?.request,
      status,
      observer: apiObserver,
    },
    {
      ...config.server,
      notModifiedCost: config.quota.notModifiedCost,
      clientAddress: config.log.clientAddress,
      keepBytes: Math.floor(config.cache.memoryBytes * shareOfLists),
    },
  )
  const storeFacts = createStoreWatch(store, log)
  // Also where nobody scrapes: its lines are for the log.
  if (store.kind === 'redis') opening.defer(every(clock, minuteMs / 2, storeFacts))
  const certificate = opened(watchCertificate(api.certificateExpiresAt, clock, log))
  const running = { timelines, runs, config: reload.running }
  const cache = createCacheAdmin(config, { store, catalogue, clock, running })
  const warming = createCacheWarm(config, { timelines, catalogue, clock })
  opening.defer(async () => void (await warming.stopWarm()))
  const { cellDegrees } = config.cache
  const survey = createCellSurvey({ timelines, catalogue, grid, cellDegrees, clock })
  // What /metrics, /readyz and /status read.
  const parts = {
    api,
    store,
    storeFacts,
    messagesFault: observers.messagesFault,
    storeFile,
    metering,
    dayUsage: createDayUsage({
      ...metering,
      loads,
      read: storeNow => readUsage(store, tiersOf(reload.running().quota), calendar, storeNow),
      calendar,
    }),
    catalogue,
    reload,
    fleetSettings,
    upstream,
    loads,
    survey,
    self,
    history,
    forecast,
    outages,
    certificate,
    servesTls: config.server.tls.cert !== null,
    logLinesDropped: dropped,
    maxMemoryBytes: config.cache.memoryBytes,
    clock,
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
        parts: () => ({ store, tiers: tiersOf(reload.running().quota), calendar, clock }),
        panel: createKeyPanel({
          store,
          dayUsage: parts.dayUsage,
          activities,
          tiers: () => tiersOf(reload.running().quota),
          calendar,
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

  const watch = watchFiles({
    files: () => (source ? [...source.files, ...filesNamedIn(reload.running())] : []),
    pollMs: source ? config.config.pollEveryMs : null,
    onChange: reload.now,
    onQuiet: reload.again,
  })
  opening.defer(() => watch.close())

  // Opened first and closed last, so that readiness can be checked while the API starts and drains.
  opening.defer(() => ops.close())
  const opsUrl = await openListener(ops, 'ops', config.ops)
  const { host, port } = config.health
  let healthUrl: string | undefined
  if (port !== null) {
    const health = buildHealth({ probes, observer: observers.ops }, { ...config.ops, ...config.health })
    opening.defer(() => health.close())
    healthUrl = await openListener(health, 'health', { host, port })
  }
  const [warm] = await Promise.all([upstream.start(), metering.start(), keys.readChanges()])
  log.info(warm, 'weather taken over from the shared tier')
  opening.defer(() => api.close())
  const apiUrl = await openListener(api, 'server', config.server)
  readiness.phase = 'ready'
  void timelines.sendHeartbeat()

  const closing = opening.move()
  return {
    apiUrl,
    opsUrl,
    healthUrl,
    settled: accounts.settled,
    reloadCatalogue: catalogue.reload,
    reloadConfig: watch.readNow,
    close: async () => {
      readiness.phase = 'draining'
      void timelines.sendHeartbeat()
      api.drain()
      await pause(reload.running().server.drainForMs)
      // Closed right after the event loop has taken in the connections that the kernel held for us.
      await nextTurn()
      await api.close()
      await closing.disposeAsync()
    },
  }
}

type ListenAt = Place & { readonly reusePort?: boolean }
type Listener = { readonly server: Server; listen(at: Required<ListenAt>): Promise<unknown> }

/** The address of a listener, such as `http://127.0.0.1:8080`. @throws InputError when it can't be listened there */
const openListener = async (
  { server, listen }: Listener,
  section: 'server' | 'ops' | 'health',
  { host, port, reusePort = false }: ListenAt,
): Promise<string> => {
  try {
    await listen({ host, port, reusePort })
  } catch (cause) {
    throw unusablePlace(section, { host, port }, cause)
  }
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener has no port')
  const scheme = 'setSecureContext' in server ? 'https' : 'http'
  return `${scheme}://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`
}
