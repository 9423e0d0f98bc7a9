// The composition root: makes every part from the configuration, introduces the parts to one another, opens the two
// listeners and closes everything in order. Nothing is decided here that a part could decide.

import { hash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { createAnswers } from './answer.ts'
import { createMemoryTier } from './cache/memory-tier.ts'
import { createReadThrough } from './cache/read-through.ts'
import { createSharedTier } from './cache/shared-tier.ts'
import { createCalendar } from './calendar.ts'
import { openCatalogue } from './catalogue/live-catalogue.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/load.ts'
import { buildApi } from './edge/api.ts'
import { InputError, messageOf } from './errors.ts'
import { createAuthenticate } from './metering/authentication.ts'
import { createQuota } from './metering/quota.ts'
import type { Log } from './ops/log.ts'
import { createMetrics } from './ops/metrics.ts'
import { buildOps } from './ops/ops.ts'
import { createReadiness } from './ops/readiness.ts'
import { createProvider } from './provider/client.ts'
import { horizonFor, pathFor } from './provider/query.ts'
import { openStore } from './stores/open-store.ts'
import { type Cell, createGrid } from './weather/cell.ts'
import { bytesOf, type Timeline } from './weather/timeline.ts'
import { decodeTimeline, encodeTimeline } from './weather/timeline-bytes.ts'

export type Gateway = {
  /** Base addresses of the listeners, such as `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly opsUrl: string
  /** Reads the catalogue's file again now. @throws InputError when it is faulty; the old one stays */
  reloadCatalogue(): Promise<void>
  /** Turns readiness red, waits for traffic to go elsewhere, finishes what is in flight, lets go of everything. */
  close(): Promise<void>
}

/** @throws InputError when something in the configuration can't be used: a file, an address, a store */
export const startGateway = async (
  config: Config,
  { clock, log }: { clock: Clock; log: Log },
): Promise<Gateway> => {
  // What is open so far, so that a failing start lets go of it again; closed last first.
  const opened: (() => unknown)[] = []
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close()
  }
  try {
    return await start(config, clock, log, opened, closeAll)
  } catch (error) {
    await closeAll()
    throw error
  }
}

const start = async (
  config: Config,
  clock: Clock,
  log: Log,
  opened: (() => unknown)[],
  closeAll: () => Promise<void>,
): Promise<Gateway> => {
  const metrics = createMetrics()
  const calendar = createCalendar(config.quota.timeZone)
  const store = await openStore(config, clock, {
    redisFailed: error => log.warn({ reason: messageOf(error) }, 'redis failed'),
  })
  opened.push(() => store.close())

  const { bounds } = config.catalogue
  const catalogue = await openCatalogue({
    path: config.catalogue.path,
    bounds,
    pollMs: config.catalogue.pollEveryMs,
    onChange: change => {
      metrics.catalogueLoaded('taken')
      log.info(change, 'catalogue swapped')
    },
    onFault: fault => {
      metrics.catalogueLoaded('refused')
      log.error({ reason: fault.message }, 'catalogue refused, the former one stays in force')
    },
  })
  opened.push(() => catalogue.close())

  const policy = config.cache
  const horizon = horizonFor(policy.freshForMs + policy.staleForMs, config.weather.hourlyHours)
  const provider = createProvider(
    { ...config.provider, horizon },
    { clock, calendar, observer: { request: metrics.providerRequest } },
  )
  opened.push(() => provider.close())

  const memory = createMemoryTier<Timeline>(policy.memoryBytes)
  const entryOf = (value: Timeline) => ({ value, fetchedAt: value.fetchedAt, bytes: bytesOf(value) })
  const shared = createSharedTier<Timeline>(
    store,
    {
      encode: ({ value }) => encodeTimeline(value),
      decode: bytes => {
        const timeline = decodeTimeline(bytes)
        return timeline && entryOf(timeline)
      },
    },
    policy,
    {
      sharedTierFailed: (step, error) => {
        metrics.sharedTierFailed(step)
        log.warn(
          { step, reason: error === undefined ? undefined : messageOf(error) },
          'shared cache tier failed',
        )
      },
    },
  )
  // Instances that ask another provider, or ask it otherwise, must not read each other's timelines.
  const question = hash('sha256', config.provider.baseUrl + pathFor([], horizon, calendar.zone)).slice(0, 12)
  const timelines = createReadThrough<Cell, Timeline>({
    keyOf: cell => `${question}:${cell.id}`,
    load: async cell => entryOf(await provider.load(cell)),
    memory,
    shared,
    policy,
    retryAfterMs: policy.retryAfterMs,
    clock,
    observer: {
      read: metrics.read,
      refreshFailed: error => {
        metrics.refreshFailed()
        log.warn({ reason: messageOf(error) }, 'refresh failed, the stale timeline stays')
      },
    },
  })

  metrics.watch({
    memoryEntries: () => memory.size,
    memoryBytes: () => memory.bytes,
    places: () => catalogue.current().size,
  })
  const readiness = createReadiness({
    store: async () => {
      await store.ping()
      return store.kind
    },
    catalogue: async () => {
      const fault = catalogue.fault()
      return `${catalogue.current().size} places${fault ? `, newer file refused: ${fault.message}` : ''}`
    },
  })

  const api = buildApi(
    {
      authenticate: createAuthenticate(store, config.quota.tiers),
      quota: createQuota(store, calendar, config.quota.keepUsageForMs),
      answers: createAnswers({
        grid: createGrid(config.cache.cellDegrees),
        timelines,
        clock,
        calendar,
        hourlyHours: config.weather.hourlyHours,
      }),
      catalogue: catalogue.current,
      bounds,
      area: config.catalogue.title,
      timezone: calendar.zone,
      clock,
      isDraining: () => readiness.phase === 'draining',
      observer: {
        admission: metrics.admission,
        answered: access => {
          metrics.requestAnswered(access.endpoint, access.status, access.ms)
          if (config.log.access) log.info(access, 'answered')
        },
        failed: (error, requestId) =>
          log.error({ requestId, reason: messageOf(error), code: codeOf(error) }, 'failed'),
      },
    },
    config.server,
  )
  const ops = buildOps({ metrics, readiness, provider: config.provider })

  // Opened first and closed last, so that readiness can be asked while the API starts and drains.
  opened.push(() => ops.close())
  const opsUrl = await listen(ops, 'ops', config.ops, log)
  opened.push(() => api.close())
  const apiUrl = await listen(api, 'api', config.server, log)
  readiness.phase = 'ready'

  return {
    apiUrl,
    opsUrl,
    reloadCatalogue: catalogue.reload,
    close: async () => {
      readiness.phase = 'draining'
      await pause(config.server.drainForMs)
      // Requests in flight end by themselves; a connection that never sends one must not keep the process.
      const patience = setTimeout(() => api.server.closeAllConnections(), config.server.requestTimeoutMs)
      await api.close()
      clearTimeout(patience)
      await closeAll()
    },
  }
}

const listen = async (
  app: FastifyInstance,
  listener: 'api' | 'ops',
  { host, port }: { readonly host: string; readonly port: number },
  log: Log,
): Promise<string> => {
  try {
    await app.listen({ host, port })
  } catch (cause) {
    const name = listener === 'api' ? 'server' : 'ops'
    throw new InputError(
      `${name}.host and ${name}.port are ${host}:${port}, which can't be listened on: ${messageOf(cause)}`,
      {
        cause,
      },
    )
  }
  const { address, family, port: bound } = app.server.address() as AddressInfo
  const scheme = 'setSecureContext' in app.server ? 'https' : 'http'
  const url = `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`
  log.info({ listener, url }, 'listening')
  return url
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined
