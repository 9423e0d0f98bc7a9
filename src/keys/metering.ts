// Connects the parts of quotas: the meter; the limits by the second and minute; the store's clock, so that instances whose clocks
// differ agree about midnight; and the number of instances that share the quotas and the provider's budget. Probes the store and
// measures its clock on timers.

import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Store } from '../stores/store.ts'
import { createMeter, type Meter, type MeterObserver, type MeterParts, type Quota } from './meter.ts'
import { createRates, type Rates } from './rates.ts'
import { localDays } from './window.ts'

export type Metering = {
  readonly quota: Quota
  readonly rates: Rates
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
    isReadWhenAway: store.kind === 'embedded',
    instances,
    windows,
    keepUsageForMs,
    clock: storeClock,
    observer,
  })
  const rates = createRates({
    store,
    isAlone: () => store.kind === 'embedded' && instances() === 1,
    isStoreAway: keyId => meter.stateOf(keyId) === 'away',
    instances,
    clock: storeClock,
  })
  const timers: NodeJS.Timeout[] = []

  return {
    quota: {
      now: storeClock.now,
      resetAfter: meter.resetAfter,
      take: meter.take,
      giveBack: meter.giveBack,
      isExact: keyId => meter.stateOf(keyId) === 'counting',
    },
    rates,
    meter,
    storeClock,
    onHeartbeat: size.onHeartbeat,
    instances,
    start: async () => {
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
    close: async () => {
      for (const timer of timers) clearInterval(timer)
      rates.close()
      await meter.close()
    },
  }
}

/** The store's clock, by its last measurement. */
type StoreClock = Clock & {
  /** Measures the store's clock again; keeps the previous measurement when the store does not answer. */
  measure(): Promise<void>
  /** False until the first measurement, and after this machine's clock was set or the machine was suspended. */
  isMeasured(): boolean
  /** The store's clock minus this machine's, in ms. */
  offsetMs(): number
}

// With a slower reply, the instant at which the store read its clock is too uncertain.
const slowestReplyMs = 250
// Corrections of a clock that runs too fast or too slow are smaller.
const smallestStepMs = 1_000

/**
 * Until the first measurement it is this machine's clock. Then `elapsed` carries it on, so that setting this machine's clock moves
 * no request to another day. An embedded store's clock is this machine's.
 */
export const createStoreClock = (store: Pick<Store, 'kind' | 'time'>, clock: Clock): StoreClock => {
  const elapsed = (store.kind === 'redis' && clock.elapsed) || clock.now
  let source = clock.now
  /** This machine's clock minus the source, and the store's clock minus this machine's, both at the last measurement. */
  let sourceMs = 0
  let offsetMs = 0
  let isMeasured = false
  const stepMs = (): number => {
    const ms = clock.now() - source() - sourceMs
    return Math.abs(ms) > smallestStepMs ? ms : 0
  }
  return {
    ...(clock.timers && { timers: clock.timers }),
    now: () => Math.round(source() + sourceMs + offsetMs),
    offsetMs: () => Math.round(offsetMs - stepMs()),
    isMeasured: () => isMeasured && stepMs() === 0,
    measure: async () => {
      const sent = { wall: clock.now(), elapsed: elapsed() }
      const storeTime = await store.time().catch(() => undefined)
      const received = { wall: clock.now(), elapsed: elapsed() }
      const tookMs = Math.max(received.wall - sent.wall, received.elapsed - sent.elapsed)
      if (storeTime === undefined || tookMs > slowestReplyMs) return
      source = elapsed
      sourceMs = received.wall - received.elapsed
      const sentAt = sent.elapsed + sourceMs
      // Between the two instants: the clocks may well agree.
      const agrees = storeTime >= sentAt - 1 && storeTime <= received.wall + 1
      offsetMs = agrees ? 0 : Math.round(storeTime - (sentAt + received.wall) / 2)
      isMeasured = true
    },
  }
}

/**
 * The number of instances is the maximum that the heartbeats of the last minute counted. It is unknown until the other instances
 * can count this one. Time without heartbeats does not count, nor does a jump of the clock: the first heartbeat after an outage may
 * count this instance alone.
 */
export type FleetSize = {
  /** A heartbeat of this instance counted this many. */
  onHeartbeat(instances: number): void
  /** Undefined while others may not count this instance yet, or this instance may not count all of them. */
  atMost(): number | undefined
}

// Each instance counts the others with its heartbeat every five seconds. Of instances that start together, each knows all
// others with its first heartbeat after theirs. Elapsed time without a heartbeat proves nothing.
const knownAfterMs = 6_000
// A gap between two heartbeats counts no longer: the others may have had no heartbeat either.
const longestGapMs = 6_000
const rememberForMs = 60_000

export const createFleetSize = (clock: Clock): FleetSize => {
  let heartbeats: { instances: number; at: number }[] = []
  let lastAt: number | undefined
  // Time with heartbeats, since the first one.
  let elapsedMs = 0
  return {
    onHeartbeat: instances => {
      const now = clock.now()
      elapsedMs += Math.min(Math.max(0, now - (lastAt ?? now)), longestGapMs)
      lastAt = now
      heartbeats = [
        ...heartbeats.filter(({ at }) => elapsedMs - at < rememberForMs),
        { instances, at: elapsedMs },
      ]
    },
    atMost: () =>
      elapsedMs >= knownAfterMs ? Math.max(1, ...heartbeats.map(({ instances }) => instances)) : undefined,
  }
}
