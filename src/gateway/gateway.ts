// The composition root: makes every part from the configuration, introduces the parts to one another, opens the
// listeners and closes everything in order. Nothing is decided here that a part could decide. Longer than 300 lines, because
// every part is connected here.

import { resolve } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { createAnswers } from '../api/answer.ts'
import { buildApi } from '../api/api.ts'
import { openUpstream } from '../cache/upstream.ts'
import { catalogueFile } from '../catalogue/catalogue-file.ts'
import { openCatalogue } from '../catalogue/live-catalogue.ts'
import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { InputError, messageOf } from '../common/errors.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { fleetHashOf } from '../config/values.ts'
import { watchFiles } from '../config/watch.ts'
import { createAuthenticate } from '../keys/authentication.ts'
import { createKeyDirectory } from '../keys/key-directory.ts'
import { openMetering } from '../keys/metering.ts'
import { createUsageDetail } from '../keys/usage-detail.ts'
import { createCacheAdmin } from '../operate/cache-admin.ts'
import { createCacheWarm } from '../operate/cache-warm.ts'
import { createCellSurvey } from '../operate/cell-survey.ts'
import { createDayUsage, readUsage } from '../operate/day-usage.ts'
import { buildHealth, buildOps } from '../operate/listener/listeners.ts'
import { createProbes, createReadiness } from '../operate/listener/probes.ts'
import { createSelfReport, reportText } from '../operate/self-report.ts'
import { createStatus } from '../operate/status.ts'
import { settingsThatNeedRestart } from '../provider/account.ts'
import { createForecast } from '../provider/forecast.ts'
import { openStore } from '../stores/open-store.ts'
import { createAccessLog } from '../telemetry/access-log.ts'
import { watchCertificate } from '../telemetry/certificate-watch.ts'
import { createHistory } from '../telemetry/history.ts'
import type { OpenLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { openOutages } from '../telemetry/outages.ts'
import { watchStoreFile } from '../telemetry/store-file-watch.ts'
import { createStoreWatch } from '../telemetry/store-watch.ts'
import { createThrottle } from '../telemetry/throttle.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { watchBudget } from './budget-watch.ts'
import { createFleetSettings } from './fleet-settings.ts'
import { openListener } from './listener.ts'
import {
  configDetail,
  observeApi,
  observeCatalogue,
  observeFleetSettings,
  observeMessages,
  observeMeter,
  observeOps,
  observeRecords,
  observeReload,
  providerDetail,
  quotaDetail,
  runDetail,
  storeDetail,
} from './observers.ts'
import { createReload, type ReloadOutcome } from './reload.ts'
import { observeUpstream } from './upstream-observer.ts'

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

// Each names a key whose count was lost: more than a handful, and never a flood.
const linesOfKeysPerMinute = 60
// Of the memory of the cache, what rendered lists and places may take.
const shareOfLists = 1 / 16

/** Where the configuration of a running gateway comes from. */
type ConfigSource = {
  /** @throws ConfigError */
  read(): LoadedConfig
  readonly files: readonly string[]
}

export type GatewayParts = Pick<OpenLog, 'log' | 'lines'> &
  Partial<Pick<OpenLog, 'dropped'>> & {
    readonly clock: Clock
    readonly open?: typeof openStore
    readonly tracing?: Tracing | undefined
    /** Without one, the configuration stays as it is. */
    readonly source?: ConfigSource
    /** How many gateways `serve --processes` runs on this store and port, this one included. */
    readonly processes?: number
    /** The time between two events of the status for dashboards, in place of a second. */
    readonly statusEveryMs?: number | undefined
  }

/** @throws InputError when something in the configuration can't be used: a file, an address, a store */
export const startGateway = async (
  config: Config,
  {
    clock,
    log,
    lines,
    dropped = () => 0,
    open = openStore,
    source,
    tracing,
    processes = 1,
    statusEveryMs,
  }: GatewayParts,
): Promise<Gateway> => {
  // The parts that are open so far: a failing start closes them, the last one first.
  await using opening = new AsyncDisposableStack()
  const metrics = createMetrics({ clock, store: config.redis.url === null ? 'embedded' : 'redis' })
  const accessLogIn = ({ log: settings }: Config) =>
    settings.access && log.isLevelEnabled('info') ? createAccessLog(settings, lines, clock) : undefined
  const calendar = createCalendar(config.quota.timeZone)
  let settingsHash = fleetHashOf(config)
  let appliedAt = clock.now()
  const seldom = createThrottle(clock)
  const often = createThrottle(clock, linesOfKeysPerMinute)
  // At once, so that every instance can show an outage of one.
  const outages = openOutages(log, clock, metrics.staleReads, () => {
    if (readiness.phase === 'ready') void timelines.sendHeartbeat()
  })
  opening.defer(outages.close)
  let storeWriteFault: string | null = null
  let messageFault: string | null = null
  const plainStore = await open(config, clock, {
    redisAway: reason => outages.storeAway('redis', reason),
    redisBack: () => outages.storeBack('redis'),
    redisMessages: fault => {
      messageFault = fault
      observeMessages(log, fault)
    },
    redisRequest: metrics.redisRequest,
    ...observeRecords(metrics, log, seldom, reason => {
      storeWriteFault = reason
    }),
    storeExposed: path =>
      log.warn(
        { path },
        'the store is open to other users of this machine; chmod 600 it, its -wal, its -shm and its -reserve',
      ),
  })
  opening.defer(() => plainStore.close())
  const storeFile =
    plainStore.kind === 'embedded' && config.store.path !== ':memory:'
      ? watchStoreFile(resolve(config.store.path), log)
      : undefined
  opening.defer(() => storeFile?.close())
  const store = tracing?.store(plainStore) ?? plainStore
  const keys = createKeyDirectory(store, clock)
  opening.defer(keys.close)
  const usageDetail = createUsageDetail(store, calendar, clock)
  opening.defer(usageDetail.close)

  const catalogue = await openCatalogue({
    // Whole, so that an error says where a relative path was looked for.
    path: catalogueFile(config.catalogue.path),
    pollMs: config.catalogue.pollEveryMs,
    ...observeCatalogue(metrics, log),
  }).catch((cause: unknown) => {
    throw new InputError(`catalogue.path: ${messageOf(cause)}`, { cause })
  })
  opening.defer(catalogue.close)

  // Behind the last count of either: only then may another gateway have this one's part of what is shared.
  let leave = async (): Promise<void> => {}
  opening.defer(() => leave())
  const metering = openMetering(
    { ...config.quota, processes },
    { store, clock, observer: observeMeter(metrics, log, outages) },
  )
  opening.defer(metering.close)
  const forecast = createForecast()
  const history = createHistory(metrics.totals, clock, () =>
    forecast.record(budget.state().windows, clock.now()),
  )
  opening.defer(history.close)
  const self = createSelfReport({
    phase: () => readiness.phase,
    configHash: () => settingsHash,
    outages,
    history,
    clock,
  })
  const fleetSettings = createFleetSettings(clock, observeFleetSettings(log))
  const upstream = openUpstream(config, {
    store,
    catalogue,
    clock,
    instances: metering.instances,
    tracing,
    settings: () => settingsHash,
    report: () => reportText(self),
    observer: observeUpstream(metrics, log, usageDetail, { seldom, outages }, ({ instances, variants }) => {
      metering.onHeartbeat(instances)
      fleetSettings.onHeartbeat(variants)
    }),
  })
  opening.defer(upstream.close)
  const { grid, timelines, account } = upstream
  const { provider, budget, breaker, runs } = account
  leave = async () => {
    if (!budget.isSettled() || !(await metering.meter.isReported())) return
    // It counts as alive for a while then, as one that was killed.
    await store.leave(timelines.instance).catch(() => {})
  }
  const budgetWatch = watchBudget(budget.state, clock.now, log)
  opening.defer(budgetWatch.close)

  const storeFacts = createStoreWatch(store, log)
  metrics.watch({
    connections: () => api.connections(),
    certificateExpiresAt: () => api.certificateExpiresAt(),
    memoryEntries: () => timelines.held().entries,
    memoryBytes: () => timelines.held().bytes,
    // A page at night is for what runs out; a point that was never cached has errors whatever the cache holds.
    firstExpiryAt: () => timelines.firstExpiryAt('cached'),
    backoffs: timelines.backoffs,
    catalogue: () => ({
      places: catalogue.current.size,
      checksum: catalogue.current.checksum,
      generation: catalogue.generation(),
      faulty: catalogue.fault() !== undefined,
    }),
    configRefused: () => reload.fault() !== undefined,
    configRestartNeeded: () => reload.restartNeeded().length,
    waitingCells: provider.waiting,
    logLinesDropped: dropped,
    stretch: timelines.stretch,
    budget: budget.state,
    topKeyShare: upstream.loads.topShare,
    breaker: () => breaker.state().state,
    meter: metering.meter.state,
    allowanceInstances: metering.instances,
    store: storeFacts,
    storeClockOffsetMs: metering.storeClock.offsetMs,
    runAvailableAt: () => runs?.newest()?.availableAt,
  })
  const readiness = createReadiness({
    store: async () => {
      await store.ping()
      return storeDetail(store.kind, {
        writeFault: storeWriteFault,
        fileFault: storeFile?.fault(),
        messageFault,
      })
    },
    quota: async () => {
      const isUp = await store.ping().then(
        () => true,
        () => false,
      )
      const reason = outages.open().find(({ outage }) => outage === 'store')?.reason
      return quotaDetail(metering.meter.state(), isUp, metering.storeClock.offsetMs(), reason)
    },
    catalogue: async () => {
      const fault = catalogue.fault()
      return `${catalogue.current.size} places${fault ? `, newer file refused: ${fault.message}` : ''}`
    },
    configuration: async () => configDetail(reload.fault(), reload.restartNeeded(), fleetSettings.variants()),
    provider: async () =>
      providerDetail(breaker.state(), self().providerOutage, budget.state(), timelines.stretch()),
    ...(config.server.tls.cert ? { certificate: async () => certificate.detail() ?? 'none' } : {}),
    ...(runs ? { run: async () => runDetail(runs.newest()) } : {}),
  })

  const authenticate = createAuthenticate(keys, config.quota.tiers, clock)
  const apiObserver = observeApi(metrics, log, accessLogIn(config), usageDetail, { seldom, often, outages })
  const api = buildApi(
    {
      authenticate,
      quota: metering.quota,
      answers: createAnswers({
        grid,
        timelines,
        calendar,
        hourlyHours: config.weather.hourlyHours,
      }),
      catalogue,
      bounds: catalogue.current.bounds,
      area: catalogue.current.title,
      timezone: calendar.zone,
      clock,
      trace: tracing?.request,
      observer: apiObserver,
    },
    {
      ...config.server,
      clientAddress: config.log.clientAddress,
      keepBytes: Math.floor(config.cache.memoryBytes * shareOfLists),
    },
  )
  const certificate = watchCertificate(api.certificateExpiresAt, clock, log)
  opening.defer(certificate.close)
  const cache = createCacheAdmin(config, {
    store,
    catalogue: () => catalogue.current,
    clock,
    running: { timelines, runs },
  })
  const warming = createCacheWarm(config, { timelines, catalogue, clock })
  opening.defer(async () => void (await warming.stopWarm()))
  const survey = createCellSurvey({
    timelines,
    catalogue: () => catalogue.current,
    grid,
    cellDegrees: config.cache.cellDegrees,
    clock,
  })
  const fleetStatus = createStatus({
    upstream,
    store,
    storeFacts,
    dayUsage: createDayUsage({
      ...metering,
      loads: upstream.loads,
      read: storeNow => readUsage(store, reload.running().quota.tiers, calendar, storeNow),
      calendar,
    }),
    catalogue,
    survey,
    self,
    history,
    forecast,
    outages,
    config: () => ({
      hash: settingsHash,
      appliedAt,
      fault: reload.fault() ?? null,
      needsRestart: reload.restartNeeded(),
    }),
    storeWriteFault: () => storeWriteFault,
    certificateExpiresAt: api.certificateExpiresAt,
    maxMemoryBytes: config.cache.memoryBytes,
    clock,
  })
  const probes = createProbes({ metrics, readiness })
  const opsObserver = observeOps(metrics, log, seldom)
  const ops = buildOps(
    {
      probes,
      passthrough: account.passthrough,
      cache: { ...cache, ...warming },
      keys: {
        parts: () => ({ store, tiers: reload.running().quota.tiers, calendar, clock }),
        changed: (action, id) => log.info({ action, id }, 'keys changed through the ops listener'),
      },
      status: { ...fleetStatus, ...survey, isDraining: () => readiness.phase === 'draining', statusEveryMs },
      dashboard: { timeZone: calendar.zone },
      observer: opsObserver,
    },
    config.ops,
  )

  const reload = createReload({
    running: config,
    read: source?.read ?? (() => ({ config, origins: new Map() })),
    needRestart: next => settingsThatNeedRestart(config, next),
    prepare: async ({ server: { tls } }) => {
      const change = api.prepareTls(tls)
      if (!change) return []
      return [change.use, ...change.replaced.map(what => () => log.info(tls, `${what} replaced`))]
    },
    apply: (next, isChanged) => {
      settingsHash = fleetHashOf(next)
      appliedAt = clock.now()
      if (isChanged('log.')) {
        log.level = next.log.level
        apiObserver.access = accessLogIn(next)
      }
      if (isChanged('quota.')) authenticate.applyTiers(next.quota.tiers)
      if (isChanged('provider.')) upstream.applyBudget(next)
      if (isChanged('cache.')) upstream.applyFreshness(next)
      if (isChanged('server.')) api.apply(next.server)
    },
    observer: observeReload(metrics, log),
  })
  const watch = watchFiles({
    files: () => (source ? [...source.files, ...tlsFiles(reload.running())] : []),
    pollMs: source ? config.config.pollEveryMs : null,
    onChange: reload.now,
    onQuiet: reload.again,
  })
  opening.defer(() => watch.close())

  // Opened first and closed last, so that readiness can be checked while the API starts and drains.
  opening.defer(() => ops.close())
  const opsUrl = await openListener(ops, 'ops', config.ops)
  const openHealth = async (port: number): Promise<string> => {
    const { allowedHosts, requestTimeoutMs } = config.ops
    const health = buildHealth(
      { probes, observer: opsObserver },
      { ...config.health, allowedHosts, requestTimeoutMs },
    )
    opening.defer(() => health.close())
    return openListener(health, 'health', { host: config.health.host, port })
  }
  const healthUrl = config.health.port === null ? undefined : await openHealth(config.health.port)
  const [warm] = await Promise.all([upstream.start(), metering.start(), keys.readChanges()])
  log.info(warm, 'weather taken over from the shared tier')
  opening.defer(() => api.close())
  const apiUrl = await openListener(api, 'server', config.server)
  readiness.phase = 'ready'
  void timelines.sendHeartbeat()

  const opened = opening.move()
  return {
    apiUrl,
    opsUrl,
    healthUrl,
    settled: provider.settled,
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
      await opened.disposeAsync()
    },
  }
}

const tlsFiles = ({ server: { tls } }: Config): string[] =>
  [tls.cert, tls.key, tls.ticketKey].filter(file => file !== null)
