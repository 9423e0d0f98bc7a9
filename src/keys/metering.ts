// Connects the parts of quotas: the meter, the store's clock, and the number of instances that share the quotas. Probes the
// store and measures its clock on timers; decides nothing itself.

import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Store } from '../stores/store.ts'
import { createFleetSize } from './fleet-size.ts'
import { createMeter, type Meter, type MeterObserver, type MeterParts, type Quota } from './meter.ts'
import { createStoreClock, type StoreClock } from './store-clock.ts'
import { localDays } from './window.ts'

export type Metering = {
  readonly quota: Quota
  readonly meter: Meter
  readonly storeClock: StoreClock
  /** A heartbeat of this instance counted this many. */
  onHeartbeat(instances: number): void
  /** The largest possible number of instances; undefined while it is unknown. */
  instances(): number | undefined
  /** Measures the store's clock and starts the timers. */
  start(): Promise<void>
  close(): Promise<void>
}

const probeEveryMs = 250
const measureEveryMs = 30_000

export type MeteringSettings = Pick<MeterParts, 'whenStoreIsDown' | 'keepUsageForMs'> & {
  readonly timeZone: string
  /** Gateways that `serve --processes` runs together. */
  readonly processes: number
}

export const openMetering = (
  { timeZone, keepUsageForMs, whenStoreIsDown, processes }: MeteringSettings,
  { store, clock, observer }: { store: Store; clock: Clock; observer: MeterObserver },
): Metering => {
  const windows = localDays(createCalendar(timeZone), keepUsageForMs)
  const storeClock = createStoreClock(store, clock)
  const size = createFleetSize(clock)
  // One file is shared by these processes, which are known from the start, and by other gateways of this machine, if any.
  const instances = store.kind === 'embedded' ? () => Math.max(processes, size.atMost() ?? 1) : size.atMost
  const meter = createMeter({
    store,
    whenStoreIsDown,
    instances,
    windows,
    keepUsageForMs,
    clock: storeClock,
    observer,
  })
  const timers: NodeJS.Timeout[] = []

  return {
    quota: { now: storeClock.now, resetAfter: meter.resetAfter, consume: meter.consume },
    meter,
    storeClock,
    onHeartbeat: size.onHeartbeat,
    instances,
    start: async () => {
      const probe = (): void => {
        void meter.probe()
        // A store that was away or slow at the start must not leave the day to this machine's clock for half a minute.
        if (!storeClock.isMeasured()) void storeClock.measure()
      }
      timers.push(setInterval(probe, probeEveryMs).unref())
      timers.push(setInterval(() => void storeClock.measure(), measureEveryMs).unref())
      await storeClock.measure()
    },
    close: async () => {
      for (const timer of timers) clearInterval(timer)
      await meter.close()
    },
  }
}
