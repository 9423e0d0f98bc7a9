// Runs traffic through gateways on a clock of discrete events: the real cache, freshness, budget and provider client, without sockets.
// Requests go to the instances in turn, as from a load balancer without affinity.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import { createCalendar, minuteMs, quarterHourMs, utcDayMs } from 'abohawa/common/calendar.ts'
import { every } from 'abohawa/common/clock.ts'
import { isList } from 'abohawa/common/endpoints.ts'
import { createMovedClock } from 'abohawa/common/moved-clock.ts'
import type { Config } from 'abohawa/config/schema.ts'
import {
  costOfList,
  horizonOf,
  openEmbeddedStore,
  silentObserver,
  type UpstreamObserver,
} from 'abohawa/parts'
import { weatherPathOf } from '../traffic/endpoint-of-path.ts'
import { type CaseFigures, createCounters } from './counters.ts'
import { createCountingStore } from './counting-store.ts'
import { createSampleWeather } from './sample-weather.ts'
import { openSimulatedGateway, type SimulatedGateway } from './simulated-gateway.ts'
import type { SimulatedTraffic } from './simulated-traffic.ts'

export type SimulateOptions = {
  readonly instances: number
  /** Nothing is counted for this time after the first request. */
  readonly warmUpMs: number
  /** Whether the traffic runs once before, as on earlier days. */
  readonly warm: boolean
  /** The response time of the provider. */
  readonly latencyMs: number
}

export type SimulateParts = {
  readonly catalogue: Catalogue
  /** Called with the share of the time that has passed, 0 to 1. */
  readonly onProgress: (share: number) => void
  /** False lets the clock tick through quiet gaps: the same figures, but slower. */
  readonly skips?: boolean
}

// Heartbeats and refresh-ahead have run by this time after a request or load.
const quietAfterMs = 15_000
const progressEvery = 1_000
const maxSteps = 96
const lookEveryMs = 10_000
// After the last request, for requests that still wait.
const lastMoveMs = 500
// Work that does not wait for the clock shows within this many turns of the event loop.
const turnsWithoutProgress = 3

export const simulate = async (
  config: Config,
  traffic: SimulatedTraffic,
  { instances: size, warmUpMs, warm, latencyMs }: SimulateOptions,
  { catalogue, onProgress, skips = true }: SimulateParts,
): Promise<CaseFigures> => {
  const begin = traffic.at[0] ?? 0
  const end = traffic.at.at(-1) ?? begin
  // Whole days, so that hours, model runs and budget windows stay in place.
  const aheadMs = warm ? Math.ceil((end - begin + 1) / utcDayMs) * utcDayMs : 0
  const clock = createMovedClock(begin - aheadMs)
  const { store, ...work } = createCountingStore(openEmbeddedStore(':memory:', clock))
  const weather = createSampleWeather(
    horizonOf(config),
    config.weather.hourlyHours,
    createCalendar(config.quota.timeZone),
  )
  const stepMs = Math.max(1, Math.ceil((end - begin - warmUpMs) / maxSteps / quarterHourMs)) * quarterHourMs
  const counters = createCounters(clock.now, stepMs, weather.encodedBytes)
  const observer: UpstreamObserver = {
    ...silentObserver,
    onRead: counters.onRead,
    onSharedTierFailure: unforeseen,
    onEntryRefused: unforeseen,
    runsUnknown: unforeseen,
    storeAway: unforeseen,
  }
  const instances = Array.from({ length: size }, () =>
    openSimulatedGateway(config, {
      ...{ store, catalogue, clock, weather, latencyMs, observer },
      instances: size,
      onSpent: (cells, weight) => {
        activeAt = clock.now()
        counters.spent(cells, weight)
      },
    }),
  )

  // The latest request or load.
  let activeAt = begin - aheadMs
  let reads = 0
  let settledAt = -1
  // The clock may move on once all loads wait for it.
  const settle = async (): Promise<void> => {
    for (let hops = 0; hops < 12 && !work.isBusy(); hops++) await null
    if (work.steps() === settledAt && reads === 0) return
    for (let still = 0, seen = work.steps(); still < turnsWithoutProgress; still++) {
      await nextTurn()
      if (work.steps() !== seen) {
        seen = work.steps()
        still = -1
      } else if (!work.isBusy() && reads === 0) break
    }
    settledAt = work.steps()
  }

  for (const instance of instances) await instance.start()
  await settle()
  let sampled = { at: clock.now(), stretch: 1 }
  const endSamples = every(clock, minuteMs, () => {
    const held = instances.map(({ timelines }) => timelines.cached())
    const now = clock.now()
    const sample = {
      stretch: instances[0]?.timelines.stretch() ?? 1,
      memoryBytes: Math.max(...held.map(({ bytes }) => bytes)),
      memoryEntries: Math.max(...held.map(({ entries }) => entries)),
      sharedEntries: work.entries(now),
    }
    counters.sample(sample, Math.round((now - sampled.at) / minuteMs))
    sampled = { at: now, stretch: sample.stretch }
  })

  const workAt = (): number => Math.min(...instances.map(({ timelines }) => timelines.nextWorkAt()))
  const quietUntil = (): number =>
    reads > 0 || work.isBusy() ? clock.now() : endOfQuiet(clock.now(), activeAt, sampled, workAt)
  /** Moves the clock, over quiet gaps in one step. */
  const moveTo = async (instant: number): Promise<void> => {
    while (skips && instant - clock.now() > quietAfterMs) {
      const until = Math.min(quietUntil(), instant)
      if (until > clock.now()) clock.skipTo(until)
      await clock.moveTo(Math.min(Math.max(until, clock.now() + lookEveryMs), instant), settle)
      showProgress()
    }
    await clock.moveTo(instant, settle)
  }
  const showProgress = (): void =>
    onProgress((clock.now() - begin + aheadMs) / Math.max(1, end - begin + aheadMs))

  const { placesOf, read } = readerOf(traffic, instances)

  let isCounting = warmUpMs === 0 && !warm
  const pass = async (offsetMs: number): Promise<void> => {
    for (let row = 0; row < traffic.at.length; row++) {
      const at = (traffic.at[row] ?? 0) + offsetMs
      await moveTo(at)
      activeAt = at
      if (!isCounting && at >= begin + warmUpMs) {
        isCounting = true
        counters.reset()
      }
      const places = placesOf(row)
      counters.request(places)
      const late = read(row)
      if (late) {
        reads += 1
        late
          .catch(() => counters.failed(places))
          .finally(() => {
            reads -= 1
          })
      }
      // A stale response comes immediately, with a load behind it.
      if (late || work.steps() !== settledAt) await settle()
      if (row % progressEvery === 0) showProgress()
    }
  }
  if (warm) await pass(-aheadMs)
  await pass(0)
  while (reads > 0) await clock.moveTo(clock.now() + lastMoveMs, settle)
  endSamples()
  const figures = counters.figures()
  for (const instance of instances) await instance.close()
  await store.close()
  return figures
}

/** Answers the rows of the traffic, by the instances in turn. */
const readerOf = ({ forms, form, key, keys }: SimulatedTraffic, instances: readonly SimulatedGateway[]) => {
  const asked = forms.map(({ path, accepts }) => {
    const parts = path === undefined ? undefined : weatherPathOf(path)
    // A list counts as a request for each of its places.
    const places = parts && isList(parts.endpoint) ? costOfList(parts.endpoint)(parts.query) : 1
    return { path: parts, accepts, places }
  })
  const askedIn = (row: number) => asked[form[row] ?? 0]
  return {
    placesOf: (row: number): number => askedIn(row)?.places ?? 1,
    read: (row: number): void | Promise<void> => {
      const { path, accepts } = askedIn(row) ?? {}
      if (!path) return
      const number = key[row] ?? 0
      try {
        const keyId = number === 0 ? undefined : keys[number - 1]
        return instances[row % instances.length]?.answer(path, { accepts, keyId })
      } catch {
        // Refused for its parameters or its place.
      }
    },
  }
}

/** Until when nothing has to be done; now if something is running. @param activeAt the latest request or load */
const endOfQuiet = (
  now: number,
  activeAt: number,
  sampled: { readonly at: number; readonly stretch: number },
  workAt: () => number,
): number => {
  const day = Math.floor(now / utcDayMs) * utcDayMs
  const knownAt = Math.max(activeAt, day) + quietAfterMs
  if (sampled.stretch > 1 || now < knownAt) return now
  // The next sample shows how loads, or a new day's budget, stretch freshness.
  const end = sampled.at < knownAt ? sampled.at + minuteMs : day + utcDayMs
  return Math.min(end, workAt())
}

const unforeseen = (...what: unknown[]): void => {
  throw new Error(`a part without sockets failed: ${what.map(String).join(' ')}`)
}
