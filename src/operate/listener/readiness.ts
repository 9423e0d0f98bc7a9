// The details of /readyz, one line for each part.

import type { Upstream } from '../../cache/upstream.ts'
import type { LiveCatalogue } from '../../catalogue/live-catalogue.ts'
import { isoOf } from '../../common/calendar.ts'
import type { Reload } from '../../config/reload.ts'
import type { Metering } from '../../keys/metering.ts'
import type { Store } from '../../stores/store.ts'
import type { CertificateWatch } from '../../telemetry/certificate-watch.ts'
import type { FleetSettings } from '../../telemetry/fleet-settings.ts'
import type { Outages } from '../../telemetry/outages.ts'
import type { StoreFileWatch } from '../../telemetry/store-file-watch.ts'
import type { SelfReport } from '../instance-report.ts'

type DetailedParts = {
  readonly store: Pick<Store, 'kind' | 'ping'>
  /** Why messages of other gateways do not arrive; null while they do. */
  readonly messagesFault: () => string | null
  /** Undefined for a store without a file. */
  readonly storeFile: Pick<StoreFileWatch, 'fault'> | undefined
  readonly metering: Pick<Metering, 'meter' | 'storeClock'>
  readonly outages: Pick<Outages, 'open'>
  readonly catalogue: Pick<LiveCatalogue, 'current' | 'fault'>
  readonly reload: Pick<Reload, 'fault' | 'restartNeeded'>
  readonly fleetSettings: Pick<FleetSettings, 'variants'>
  readonly upstream: Pick<Upstream, 'account' | 'accounts' | 'timelines'>
  readonly self: SelfReport
  readonly certificate: Pick<CertificateWatch, 'detail'>
  readonly servesTls: boolean
}

/** The checks by their names; each gives a line, or rejects where its part does not answer. */
export const readinessDetails = (parts: DetailedParts): Readonly<Record<string, () => Promise<string>>> => {
  const { store, metering, outages, catalogue, reload, upstream, certificate } = parts
  const { breaker, budget, runs } = upstream.account
  const quotaDetail = async (): Promise<string> => {
    const isUp = await store.ping().then(
      () => true,
      () => false,
    )
    // The reason if the store answers but can't count.
    const reason = outages.open().find(({ outage }) => outage === 'store')?.reason
    const away = `counted locally${isUp && reason !== undefined ? `: ${reason}` : ', the store is unavailable'}`
    // Counting notices an unavailable store with its next batch.
    const words = isUp
      ? { counting: 'counted in the store', away, reconciling: 'reconciling with the store' }
      : {
          counting: 'counted locally from the next request on, the store is unavailable',
          away,
          reconciling: away,
        }
    const offsetMs = metering.storeClock.offsetMs()
    const skew = Math.abs(offsetMs) >= 1000 && `clock here is ${Math.round(-offsetMs / 1000)} s off`
    return listed(', ', words[metering.meter.state()], skew)
  }
  const providerDetail = async (): Promise<string> => {
    const { state, openUntil } = breaker.state()
    const { windows, closedUntil, shared } = budget.state()
    const outage = parts.self().providerOutage
    const next = upstream.accounts.next().upstream?.name
    const stretch = upstream.timelines.stretch()
    return listed(
      ', ',
      `circuit ${state}${openUntil === null ? '' : ` until ${isoOf(openUntil)}`}`,
      outage !== null && `outage (${outage})`,
      next !== upstream.accounts.all[0]?.name && (next === undefined ? 'no upstream loads' : `${next} loads`),
      closedUntil !== null && `limited until ${isoOf(closedUntil)}`,
      ...windows.map(({ name, used, limit }) => `${Math.round(used)} of ${limit} this ${name}`),
      stretch >= 1.05 && `weather stays fresh ${stretch.toFixed(1)} times longer`,
      !shared && 'budget not shared',
    )
  }
  return {
    store: async () => {
      await store.ping()
      const fault = parts.messagesFault()
      return listed(
        ', ',
        store.kind,
        parts.storeFile?.fault(),
        fault !== null && `without messages of other gateways: ${fault}`,
      )
    },
    quota: quotaDetail,
    catalogue: async () => {
      const fault = catalogue.fault()
      return listed(
        ', ',
        `${catalogue.current.size} places`,
        fault && `newer file rejected: ${fault.message}`,
      )
    },
    configuration: async () => {
      const fault = reload.fault()
      const needed = reload.restartNeeded()
      const variants = parts.fleetSettings.variants()
      return listed(
        '; ',
        fault === undefined ? 'in effect' : `newer one rejected: ${fault.split('\n')[0]}`,
        needed.length > 0 && `needs a restart: ${needed.join(', ')}`,
        variants > 1 && `the fleet runs ${variants} different ones`,
      )
    },
    provider: providerDetail,
    ...(parts.servesTls && { certificate: async () => certificate.detail() ?? 'none' }),
    ...(runs && {
      run: async () => {
        const run = runs.newestRead()
        return run
          ? `${isoOf(run.initialisedAt)}, available ${isoOf(run.availableAt)}`
          : 'unknown, freshness goes by age'
      },
    }),
  }
}

const listed = (between: string, ...parts: readonly (string | false | undefined)[]): string =>
  parts.filter(part => part !== undefined && part !== false).join(between)
