// Connects the parts of quotas: the meter; the store's clock, so that instances whose clocks differ agree about midnight; and the number
// of instances that share the quotas and the provider's budget.

import { createCalendar } from '../common/calendar.ts'
import { type Clock, createFollowingClock } from '../common/clock.ts'
import type { Store } from '../stores/store.ts'
import { Meter, type MeterObserver, type MeterParts } from './meter.ts'
import { localDays } from './window.ts'

export type Metering = ReturnType<typeof openMetering>

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
) => {
  const windows = localDays(createCalendar(timeZone), keepUsageForMs)
  // An embedded store's clock is this machine's, also when that is set.
  const elapsedClock = store.kind === 'redis' ? clock.elapsed : clock.now
  const storeClock = createFollowingClock(() => store.time(), clock, elapsedClock)
  const size = createFleetSize(clock)
  // One file is shared by these processes, which are known from the start, and by other gateways of this machine, if any.
  const instances = store.kind === 'embedded' ? () => Math.max(processes, size.atMost() ?? 1) : size.atMost
  const meter = new Meter({
    store,
    whenStoreIsDown,
    isReadWhenAway: store.kind === 'embedded',
    instances,
    windows,
    keepUsageForMs,
    clock: storeClock,
    observer,
  })
  const timers: NodeJS.Timeout[] = []

  return {
    /** The quota of clients. */
    meter,
    storeClock,
    onHeartbeat: size.onHeartbeat,
    /** The largest possible number of instances; undefined while it is unknown. */
    instances,
    /** Measures the store's clock and starts the timers. */
    start: async (): Promise<void> => {
      const probe = (): void => {
        void meter.probe()
        // A store that was away or slow at the start must not leave the day to this machine's clock for half a minute. After a
        // suspension the store's clock is ahead of what is known here.
        if (!storeClock.isMeasured()) void storeClock.measure()
      }
      timers.push(setInterval(probe, probeEveryMs).unref())
      timers.push(setInterval(() => void storeClock.measure(), measureEveryMs).unref())
      await storeClock.measure()
    },
    close: async (): Promise<void> => {
      for (const timer of timers) clearInterval(timer)
      await meter.close()
    },
  }
}

// Each instance counts the others with its heartbeat every five seconds. Of instances that start together, each knows all
// others with its first heartbeat after theirs. Elapsed time without a heartbeat proves nothing.
const knownAfterMs = 6_000
// A gap between two heartbeats counts no longer: the others may have had no heartbeat either.
const longestGapMs = 6_000
const rememberForMs = 60_000

/**
 * The number of instances is the maximum that the heartbeats of the last minute counted. It is unknown until the other instances
 * can count this one. Time without heartbeats does not count, nor does a jump of the clock: the first heartbeat after an outage may
 * count only this instance.
 */
export const createFleetSize = (clock: Clock) => {
  let heartbeats: { instances: number; at: number }[] = []
  let lastAt: number | undefined
  // Time with heartbeats, since the first one.
  let elapsedMs = 0
  return {
    /** A heartbeat of this instance counted this many. */
    onHeartbeat: (instances: number): void => {
      const now = clock.now()
      elapsedMs += Math.min(Math.max(0, now - (lastAt ?? now)), longestGapMs)
      lastAt = now
      heartbeats = [
        ...heartbeats.filter(({ at }) => elapsedMs - at < rememberForMs),
        { instances, at: elapsedMs },
      ]
    },
    /** Undefined while others may not count this instance yet, or this instance may not count all of them. */
    atMost: (): number | undefined =>
      elapsedMs >= knownAfterMs ? Math.max(1, ...heartbeats.map(({ instances }) => instances)) : undefined,
  }
}
