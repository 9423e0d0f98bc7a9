// The report of /status: this gateway, and what other instances report in the store.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { aliveForMs } from '../cache/heartbeat.ts'
import type { Upstream } from '../cache/upstream.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import { isoOf, isoOrNull } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { safeText } from '../common/outside-text.ts'
import { version } from '../common/version.ts'
import type { Reload } from '../config/reload.ts'
import type { LoadsByKey } from '../keys/loads-by-key.ts'
import type { KnownUsage } from '../keys/meter.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { SpendingForecast } from '../provider/forecast.ts'
import type { Store } from '../stores/store.ts'
import { renewalOf } from '../telemetry/certificate-watch.ts'
import { type History, stepSeconds } from '../telemetry/history.ts'
import type { Outages } from '../telemetry/outages.ts'
import type { StoreFacts } from '../telemetry/store-watch.ts'
import type { CellSurvey } from './cell-survey.ts'
import { type DayUsage, maxKeysNear, topKeys } from './day-usage.ts'
import { type InstanceReport, readReport, type SelfReport } from './instance-report.ts'
import type { GatewayStatus, InstanceStatus, KeyNearLimit, StatusReport } from './reports/status-report.ts'
import { upstreamStatuses } from './upstream-status.ts'

export type StatusParts = {
  readonly upstream: Pick<Upstream, 'timelines' | 'account' | 'accounts'>
  readonly loads: Pick<LoadsByKey, 'all'>
  readonly store: Pick<Store, 'aliveInstances' | 'findKey' | 'findSubscriber'>
  readonly storeFacts: () => Promise<StoreFacts>
  readonly dayUsage: () => Promise<DayUsage>
  readonly catalogue: LiveCatalogue
  readonly survey: CellSurvey
  readonly self: SelfReport
  readonly history: History
  readonly forecast: SpendingForecast
  readonly outages: Pick<Outages, 'open'>
  readonly reload: Pick<Reload, 'hash' | 'appliedAt' | 'fault' | 'restartNeeded'>
  readonly api: {
    /** Of the certificate that it serves, ms since the epoch; undefined without one. */
    certificateExpiresAt(): number | undefined
  }
  readonly maxMemoryBytes: number
  readonly clock: Clock
}

const keepNamesForMs = 60_000

export const createStatus = (parts: StatusParts) => {
  const { upstream, store, catalogue, reload, survey, self, history, forecast, clock } = parts
  const { timelines, account } = upstream
  const { budget, breaker, lastRequests, runs } = account
  const names = new LRUCache<string, { subscriber: string | null; tier: string | null }>({
    max: 10 * maxKeysNear,
    ttl: keepNamesForMs,
  })

  const instances = async (): Promise<InstanceStatus[]> => {
    const own = instanceStatus(timelines.instance, self(), true)
    try {
      const others = await instancesIn(store, clock.now())
      return [own, ...others.filter(({ id }) => id !== own.id)]
    } catch {
      // The report has the store's fault in another field.
      return [own]
    }
  }
  const nameOf = async (keyId: string) => {
    const known = names.get(keyId)
    if (known) return known
    try {
      const key = await store.findKey(keyId)
      const subscriber = key && (await store.findSubscriber(key.subscriberId))
      const name = { subscriber: subscriber?.name ?? null, tier: key?.tier ?? null }
      names.set(keyId, name)
      return name
    } catch {
      return { subscriber: null, tier: null }
    }
  }
  const named = (near: readonly KnownUsage[]): Promise<KeyNearLimit[]> =>
    Promise.all(
      near.map(async ({ keyId, used, limit }) => ({
        keyId,
        ...(await nameOf(keyId)),
        used,
        limit,
      })),
    )

  const collect = async (): Promise<GatewayStatus> => {
    const { near: fullest, top } = await parts.dayUsage()
    const [storeNow, fleet, near] = await Promise.all([
      parts.storeFacts(),
      instances(),
      fullest && named(fullest),
    ])
    // Each walks over all cells in demand: in turns of the event loop, or in one of its own.
    const coverage = await timelines.coverage()
    await nextTurn()
    const firstExpiryAt = await timelines.firstExpiryAt()
    await nextTurn()
    const topPlaces = survey.topPlaces()
    await nextTurn()
    const now = clock.now()
    const spending = budget.state()
    const { state, openUntil } = breaker.state()
    const { successAt, failure } = lastRequests
    const run = runs?.newestRead()
    const held = timelines.cached()
    const stretch = timelines.stretch()
    const hash = reload.hash()
    const certificateExpiresAt = parts.api.certificateExpiresAt()
    return {
      at: isoOf(now),
      version,
      outages: parts.outages
        .open()
        .map(({ failedAt: _, ...each }) => ({ ...each, since: isoOf(each.since) })),
      instances: fleet,
      provider: {
        circuit: state,
        retryAt: isoOrNull(openUntil ?? spending.closedUntil),
        lastSuccessAt: isoOrNull(successAt),
        lastFailure: failure && { ...failure, at: isoOf(failure.at) },
        firstErrorAt: isoOrNull(firstExpiryAt === undefined ? null : Math.max(now, firstExpiryAt)),
      },
      budget: {
        ...budgetStatus(spending, forecast, now),
        demandPerDay: timelines.demandPerDay(),
        stretch: Number.isFinite(stretch) ? stretch : null,
      },
      upstreams: upstreamStatuses(upstream),
      run: run
        ? {
            initialisedAt: isoOf(run.initialisedAt),
            availableAt: isoOf(run.availableAt),
            nextExpectedAt: isoOf(run.availableAt + run.intervalMs),
          }
        : null,
      cache: {
        ...held,
        maxBytes: parts.maxMemoryBytes,
        wantedCells: timelines.fleet().wanted,
        counts: survey.counts(),
        reach: reachStatus(coverage),
      },
      store: storeStatus(storeNow),
      catalogue: {
        places: catalogue.current.size,
        checksum: catalogue.current.checksum,
        fault: catalogue.fault()?.message ?? null,
      },
      certificate:
        certificateExpiresAt === undefined
          ? null
          : { expiresAt: isoOf(certificateExpiresAt), renewal: renewalOf(certificateExpiresAt, now) },
      config: {
        hash,
        appliedAt: isoOf(reload.appliedAt()),
        fault: reload.fault() ?? null,
        needsRestart: [...reload.restartNeeded()],
        differs: fleet
          .filter(({ configHash }) => configHash !== null && configHash !== hash)
          .map(({ id }) => id),
      },
      keysNearLimit: near,
      top: {
        places: topPlaces,
        keys: topKeys(top, parts.loads.all()),
      },
      history: historyOf(history),
    }
  }
  let working: ReturnType<typeof collect> | undefined

  return {
    /** Simultaneous callers share one report. */
    report: (): Promise<GatewayStatus> => {
      working ??= collect().finally(() => {
        working = undefined
      })
      return working
    },
  }
}

export const storeStatus = ({ size, ...facts }: StoreFacts): StatusReport['store'] => ({
  ...facts,
  isUp: facts.fault === null,
  usedBytes: size?.usedBytes ?? null,
})

/** The instances that reported to the store and have not stopped. @throws StoreError */
export const instancesIn = async (
  store: Pick<Store, 'aliveInstances'>,
  now: number,
): Promise<InstanceStatus[]> =>
  (await store.aliveInstances(aliveForMs)).flatMap(({ id, silentForMs, report }) => {
    const read = readReport(report)
    // By the store's clock, because the instance's may differ.
    return read ? [instanceStatus(safeText(id), { ...read, seenAt: now - silentForMs }, false)] : []
  })

const instanceStatus = (id: string, report: InstanceReport, isSelf: boolean): InstanceStatus => ({
  id,
  ...report,
  startedAt: isoOrNull(report.startedAt),
  outages: report.outages?.map(({ outage, since }) => ({ outage, since: isoOf(since) })) ?? null,
  seenAt: isoOrNull(report.seenAt),
  isSelf,
})

/** The budget with its forecast, for which the current spending is recorded. */
export const budgetStatus = (
  { shared, windows, closedUntil, closedBecause }: BudgetState,
  forecast: SpendingForecast,
  now: number,
): Pick<StatusReport['budget'], 'shared' | 'closure' | 'windows'> => {
  forecast.record(windows, now)
  return {
    shared,
    closure: closedUntil === null ? null : { until: isoOf(closedUntil), reason: closedBecause },
    windows: windows.map(window => ({
      ...window,
      resetsAt: isoOf(window.resetsAt),
      exhaustedAt: isoOrNull(forecast.exhaustedAt(window, now)),
    })),
  }
}

const reachStatus = ({
  allowedMs,
  share,
  leastMs,
}: Awaited<ReturnType<Upstream['timelines']['coverage']>>): GatewayStatus['cache']['reach'] => ({
  allowedSeconds: Math.round(allowedMs / 1000),
  share,
  leastSeconds: leastMs === null ? null : Math.round(leastMs / 1000),
})

const historyOf = (history: History): GatewayStatus['history'] => {
  const { endsAt, points } = history.points()
  const series = (read: (point: (typeof points)[number]) => number | null) => points.map(read)
  return {
    stepSeconds,
    endsAt: isoOf(endsAt),
    requestsPerSecond: series(point => point.requestsPerSecond),
    hitShare: {
      memory: series(({ hitShare }) => hitShare.memory),
      shared: series(({ hitShare }) => hitShare.shared),
      provider: series(({ hitShare }) => hitShare.provider),
    },
    p50: series(({ p50 }) => p50),
    p90: series(({ p90 }) => p90),
    p99: series(({ p99 }) => p99),
    errorsPerSecond: series(point => point.errorsPerSecond),
  }
}
