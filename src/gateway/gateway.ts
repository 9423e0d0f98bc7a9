// The composition root: makes every part from the configuration, introduces the parts to one another, opens the
// listeners and closes everything in order. Nothing is decided here that a part could decide.

import type { AddressInfo, Server } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { createAnswers } from '../answer.ts'
import { createCalendar } from '../calendar.ts'
import { catalogueFile } from '../catalogue/catalogue-file.ts'
import { openCatalogue } from '../catalogue/live-catalogue.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { buildApi } from '../edge/api.ts'
import { InputError, messageOf } from '../errors.ts'
import { createAuthenticate } from '../metering/authentication.ts'
import { createKeyDirectory } from '../metering/key-directory.ts'
import { createUsageDetail } from '../metering/usage-detail.ts'
import { createAccessLog } from '../ops/access-log.ts'
import { createHistory } from '../ops/history.ts'
import type { OpenLog } from '../ops/log.ts'
import { createMetrics } from '../ops/metrics.ts'
import { buildOps } from '../ops/ops.ts'
import { createProbes } from '../ops/probes.ts'
import { createReadiness } from '../ops/readiness.ts'
import { buildStatus } from '../ops/status.ts'
import { createThrottle } from '../ops/throttle.ts'
import { createForecast } from '../provider/forecast.ts'
import { openStore } from '../stores/open-store.ts'
import { createCacheAdmin } from './cache-admin.ts'
import { createCellSurvey } from './cell-survey.ts'
import { openMetering } from './metering.ts'
import {
  observeApi,
  observeCatalogue,
  observeMeter,
  observeOps,
  observeRecords,
  observeSupply,
  providerDetail,
  quotaDetail,
  runDetail,
} from './observers.ts'
import { type ConfigStatus, createSelfReport, createStatus, reportText } from './status.ts'
import { openSupply } from './supply.ts'

export type Gateway = {
  /** Base addresses of the listeners, such as `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly opsUrl: string
  /** Undefined unless `status.port` is set. */
  readonly statusUrl: string | undefined
  /** Reads the catalogue's file again now. @throws InputError when it is faulty; the old one stays */
  reloadCatalogue(): Promise<void>
  /** Turns readiness red, waits for traffic to go elsewhere, finishes what is in flight, lets go of everything. */
  close(): Promise<void>
}

// Each names a key whose count was lost: more than a handful, and never a flood.
const linesOfKeysPerMinute = 60
// Of the memory of the cache, what rendered lists and places may take.
const shareOfLists = 1 / 16

/** @throws InputError when something in the configuration can't be used: a file, an address, a store */
export const startGateway = async (
  config: Config,
  {
    clock,
    log,
    lines,
    dropped = () => 0,
    open = openStore,
  }: Pick<OpenLog, 'log' | 'lines'> &
    Partial<Pick<OpenLog, 'dropped'>> & { clock: Clock; open?: typeof openStore },
): Promise<Gateway> => {
  // What is open so far, so that a failing start lets go of it again; let go of last first.
  await using opening = new AsyncDisposableStack()
  const startedAt = clock.now()
  const metrics = createMetrics()
  const accessLog =
    config.log.access && log.isLevelEnabled('info') ? createAccessLog(config.log, lines, clock) : undefined
  const calendar = createCalendar(config.quota.timeZone)
  const seldom = createThrottle(clock)
  const often = createThrottle(clock, linesOfKeysPerMinute)
  const store = await open(config, clock, {
    redisAway: reason => log.error({ reason }, 'redis is away'),
    redisBack: () => log.info('redis is back'),
    ...observeRecords(metrics, log, { seldom, often }),
    storeExposed: path =>
      log.warn(
        { path },
        'the store is open to other users of this machine; chmod 600 it, its -wal, its -shm and its -reserve',
      ),
  })
  opening.defer(() => store.close())
  const keys = createKeyDirectory(store, clock)
  opening.defer(keys.close)
  const usageDetail = createUsageDetail(store, calendar)
  opening.defer(usageDetail.close)

  const { bounds, pollEveryMs } = config.catalogue
  const catalogue = await openCatalogue({
    // Whole, so that an error says where a relative path was looked for.
    path: catalogueFile(config.catalogue.path),
    bounds,
    pollMs: pollEveryMs,
    ...observeCatalogue(metrics, log),
  }).catch((cause: unknown) => {
    throw new InputError(`catalogue.path: ${messageOf(cause)}`, { cause })
  })
  opening.defer(catalogue.close)

  const metering = openMetering(config, { store, clock, observer: observeMeter(metrics, log) })
  opening.defer(metering.close)
  const history = createHistory(metrics.totals, clock, () =>
    forecast.record(budget.state().windows, clock.now()),
  )
  opening.defer(history.close)
  const forecast = createForecast()
  const configStatus = (): ConfigStatus => ({
    hash: null,
    appliedAt: startedAt,
    fault: null,
    needsRestart: [],
  })
  const self = createSelfReport({
    phase: () => readiness.phase,
    configHash: () => configStatus().hash,
    history,
    clock,
  })
  const supply = openSupply(config, {
    store,
    catalogue,
    clock,
    instances: metering.instances,
    report: () => reportText(self),
    observer: observeSupply(metrics, log, seldom, metering.onHeartbeat),
  })
  opening.defer(supply.close)
  const { grid, timelines, provider, budget, breaker, runs } = supply

  metrics.watch({
    connections: () => api.connections(),
    memoryEntries: () => timelines.held().entries,
    memoryBytes: () => timelines.held().bytes,
    places: () => catalogue.current.size,
    waitingCells: provider.waiting,
    logLinesDropped: dropped,
    stretch: timelines.stretch,
    budget: budget.state,
    breaker: () => breaker.state().state,
    meter: metering.meter.state,
    storeClockOffsetMs: metering.storeClock.offsetMs,
    runAvailableAt: () => runs?.newest()?.availableAt,
  })
  const readiness = createReadiness({
    store: async () => {
      await store.ping()
      return store.kind
    },
    quota: async () => quotaDetail(metering.meter.state(), metering.storeClock.offsetMs()),
    catalogue: async () => {
      const fault = catalogue.fault()
      return `${catalogue.current.size} places${fault ? `, newer file refused: ${fault.message}` : ''}`
    },
    provider: async () => providerDetail(breaker.state(), budget.state(), timelines.stretch()),
    ...(runs ? { run: async () => runDetail(runs.newest()) } : {}),
  })

  const api = buildApi(
    {
      authenticate: createAuthenticate(keys, config.quota.tiers, clock),
      quota: metering.quota,
      answers: createAnswers({
        grid,
        timelines,
        calendar,
        hourlyHours: config.weather.hourlyHours,
      }),
      catalogue,
      bounds,
      area: config.catalogue.title,
      timezone: calendar.zone,
      clock,
      observer: observeApi(metrics, log, accessLog, usageDetail),
    },
    { ...config.server, keepBytes: config.cache.memoryBytes * shareOfLists },
  )
  const cache = createCacheAdmin(config, {
    store,
    catalogue: () => catalogue.current,
    clock,
    running: { timelines, runs },
  })
  const survey = createCellSurvey({
    timelines,
    catalogue: () => catalogue.current,
    grid,
    cellDegrees: config.cache.cellDegrees,
    clock,
  })
  const status = createStatus({
    supply,
    metering,
    store,
    catalogue,
    survey,
    self,
    history,
    forecast,
    config: configStatus,
    maxMemoryBytes: config.cache.memoryBytes,
    clock,
  })
  const probes = createProbes({ metrics, readiness })
  const opsObserver = observeOps(metrics, log, seldom)
  const ops = buildOps(
    {
      probes,
      passthrough: supply.passthrough,
      cache,
      status: { ...status, ...survey, isDraining: () => readiness.phase === 'draining' },
      dashboard: { timeZone: calendar.zone },
      observer: opsObserver,
    },
    config.ops,
  )

  // Opened first and closed last, so that readiness can be checked while the API starts and drains.
  opening.defer(() => ops.close())
  const opsUrl = await listen(ops, 'ops', config.ops)
  const openStatus = async (port: number): Promise<string> => {
    const options = { ...config.ops, ...config.status }
    const status = buildStatus({ probes, observer: opsObserver }, options)
    opening.defer(() => status.close())
    return listen(status, 'status', { ...config.status, port })
  }
  const statusUrl = config.status.port === null ? undefined : await openStatus(config.status.port)
  const [warm] = await Promise.all([supply.start(), metering.start(), keys.readChanges()])
  log.info(warm, 'weather taken over from the shared tier')
  opening.defer(() => api.close())
  const apiUrl = await listen(api, 'server', config.server)
  readiness.phase = 'ready'
  void timelines.sendHeartbeat()

  const opened = opening.move()
  return {
    apiUrl,
    opsUrl,
    statusUrl,
    reloadCatalogue: catalogue.reload,
    close: async () => {
      readiness.phase = 'draining'
      void timelines.sendHeartbeat()
      api.drain()
      await pause(config.server.drainForMs)
      // Closed right after the event loop has taken in the connections that the kernel held for us.
      await nextTurn()
      await api.close()
      await opened.disposeAsync()
    },
  }
}

type ListenAt = { readonly host: string; readonly port: number; readonly reusePort?: boolean }

type Listener = {
  readonly server: Server
  listen(at: ListenAt): Promise<unknown>
}

const listen = async (
  app: Listener,
  section: 'server' | 'ops' | 'status',
  { host, port, reusePort = false }: ListenAt,
): Promise<string> => {
  try {
    await app.listen({ host, port, reusePort })
  } catch (cause) {
    throw new InputError(
      `${section}.host and ${section}.port are ${host}:${port}, which can't be listened on: ${messageOf(cause)}`,
      { cause },
    )
  }
  const { address, family, port: bound } = app.server.address() as AddressInfo
  const scheme = 'setSecureContext' in app.server ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`
}
