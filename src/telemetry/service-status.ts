// The data of the consumers' status page: how fresh the weather in demand is, the newest model run, current outages, and the last days.
// Only shares, ages and instants: nothing names a host, an instance or a key, or says how much traffic there is. Freshness is of this
// gateway's memory; outages and days are of the fleet.

import type { Timelines } from '../cache/upstream.ts'
import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ModelRun } from '../provider/protocol.ts'
import type { Incident, ServiceDay, ServiceDays } from './service-days.ts'
import type { OutageKind } from './service-record.ts'

export type { Incident, ServiceDay } from './service-days.ts'
export type { OutageKind } from './service-record.ts'

/** Instants in ms since the epoch, to the minute. */
export type ServiceStatus = {
  readonly at: number
  /** Of the cells in demand; null without any. Ages of what is held of them; in ms. */
  readonly freshShare: number | null
  readonly medianAgeMs: number | null
  readonly oldestAgeMs: number | null
  /** When the newest run that was read of the model in use began; null where runs are not followed, or none was read. */
  readonly runAt: number | null
  /** Since when each is out; null while it is not. */
  readonly outSince: { readonly [Kind in OutageKind]: number | null }
  /** Newest first. */
  readonly days: readonly ServiceDay[]
  /** The outages of these days that are over, newest first. */
  readonly incidents: readonly Incident[]
}

export type FleetOutage = { readonly outage: OutageKind; readonly since: number }

// More cells than the box has at the usual size.
const mostCells = 10_000

const toMinute = (ms: number): number => Math.floor(ms / minuteMs) * minuteMs

export const createServiceStatus =
  ({
    timelines,
    run,
    outages,
    days,
    clock,
  }: {
    readonly timelines: Pick<Timelines, 'mostRequested' | 'overview'>
    /** The newest one that was read of the upstream in use. */
    readonly run: () => ModelRun | undefined
    /** Over the fleet. */
    readonly outages: () => Promise<readonly FleetOutage[]>
    readonly days: Pick<ServiceDays, 'read'>
    readonly clock: Clock
  }) =>
  async (): Promise<ServiceStatus> => {
    const [on, last] = await Promise.all([outages(), days.read()])
    const now = clock.now()
    const cells = timelines.mostRequested(mostCells).map(({ cell }) => timelines.overview(cell))
    const ages = cells
      .flatMap(({ fetchedAt }) => (fetchedAt === null ? [] : [Math.max(0, now - fetchedAt)]))
      .sort((one, other) => one - other)
    const ageAt = (i: number): number | null => (ages[i] === undefined ? null : toMinute(ages[i]))
    const since = (kind: OutageKind): number | null => {
      const of = on.filter(({ outage }) => outage === kind)
      return of.length === 0 ? null : toMinute(Math.min(...of.map(each => each.since)))
    }
    const outSince = { provider: since('provider'), store: since('store') }
    // The record of an outage that is on grows with it.
    const isOver = ({ kind, to }: Incident): boolean => to < (outSince[kind] ?? Number.POSITIVE_INFINITY)
    return {
      at: toMinute(now),
      freshShare:
        cells.length === 0 ? null : cells.filter(({ state }) => state === 'fresh').length / cells.length,
      medianAgeMs: ageAt(Math.floor((ages.length - 1) / 2)),
      oldestAgeMs: ageAt(ages.length - 1),
      runAt: run()?.initialisedAt ?? null,
      outSince,
      days: last.days,
      incidents: last.incidents
        .filter(isOver)
        .map(({ kind, from, to }) => ({ kind, from: toMinute(from), to: toMinute(to) })),
    }
  }
