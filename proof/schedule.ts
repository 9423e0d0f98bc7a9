// A seed → the schedule of one history: a fleet, and steps of load, time and faults that begin and end. Pure: equal seeds give
// equal schedules. What may happen is in events.ts; nothing here knows the product.

import { eventsOf, load, move, ofProcess, type State } from './events.ts'
import { openings } from './openings.ts'
import { createRandom, type Random } from './random.ts'
import type { Protocol, Schedule, Settings, Step, StoreKind } from './steps.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
/** Dhaka is six hours ahead of UTC all year. */
const zoneMs = 6 * hour

// Redis expires by its own clock, so every schedule lies in its future.
const firstDay = Date.UTC(2031, 0, 1)

const tiers: Settings = {
  'quota.tiers.free': '24',
  'quota.tiers.starter': '60',
  'quota.tiers.business': '400',
  'quota.tiers.enterprise': '100000',
}

/** The keys of every schedule: one that has enough, and three that run out. */
const keys = { plenty: 'enterprise', many: 'business', some: 'starter', few: 'free' } as const
const bound = { some: ['weather', 'coords', 'weather_places', 'locations'] } as const

export const scheduleOf = (seed: number): Schedule => {
  const random = createRandom(seed, 'proof')
  // Each opening comes equally often, so that few seeds have all of them.
  const opening = openings[seed % openings.length] ?? {}
  const drawn = storeOf(random)
  const store = opening.stores ? random.pick(opening.stores) : drawn
  const gateways = store === 'embedded' ? 1 : 3
  const isSkewed = random.chance(0.2) ? !opening.isPunctual : opening.isSkewed === true
  const skewOf = (): number => (isSkewed ? random.between(-90, 90) * second : 0)
  const protocol = random.pick<Protocol>(
    opening.protocols ?? ['http', 'http', 'http', 'http', 'https', 'http2'],
  )
  const start = startOf(random)
  // Only a process really dies behind several servers, to which there is no link that could be cut.
  const hasProcesses =
    random.chance(0.02) || opening.hasProcesses === true || store === 'sentinel' || store === 'cluster'
  const settings = {
    ...settingsOf(random, store !== 'embedded'),
    ...(seed % 3 === 1 && { 'quota.notModifiedCost': '0' }),
    ...opening.settings,
  }
  const state: State = {
    random,
    store,
    hasCertificate: protocol !== 'http',
    hasProcesses,
    gateways,
    skewOf,
    alive: new Set(),
    faults: new Map(),
    issued: [],
    next: 0,
  }
  for (let i = 0; i < gateways; i++) state.alive.add(i)
  const steps: Step[] = [{ do: 'move', ms: 13 * second }, load(state), load(state)]
  steps.push(...(opening.begin?.(state) ?? []))
  const acts = random.between(4, 9)
  for (let i = 0; i < acts; i++) steps.push(...act(state))
  return {
    seed,
    protocol,
    store,
    hasProcesses,
    hasFallback: Math.floor(seed / openings.length) % 4 === 1,
    start,
    skews: Array.from({ length: gateways }, skewOf),
    settings,
    ...(opening.constants && { constants: opening.constants }),
    ...{ keys, bound, steps },
  }
}

const storeOf = (random: Random): StoreKind => {
  const kind = random.fraction()
  return kind < 0.04 ? 'embedded' : kind < 0.075 ? 'sentinel' : kind < 0.11 ? 'cluster' : 'redis'
}

/** Any instant of a day; often shortly before a midnight in the key's zone, or before the provider's hour ends. */
const startOf = (random: Random): number => {
  const begin = firstDay + random.between(0, 300) * day
  if (random.chance(0.25)) return begin + day - zoneMs - random.between(20, 300) * second
  return begin + random.between(0, 23) * hour + random.between(0, 3_599) * second
}

const settingsOf = (random: Random, isFleet: boolean): Settings => ({
  ...tiers,
  'cache.freshness': random.chance(0.35) ? 'run' : 'age',
  'cache.freshFor': random.pick(['10m', '30m', '1h']),
  'cache.freshForAtMost': random.pick(['1h', '2h']),
  'cache.staleFor': random.pick(['1h', '2h', '6h']),
  'quota.whenStoreIsDown': isFleet && random.chance(0.15) ? 'refuse' : 'share',
  'provider.budget.perMinute': random.pick(['', '16', '22', '60']),
  'provider.budget.perHour': random.pick(['', '240', '600']),
  'provider.budget.perDay': random.pick(['', '', '3000']),
})

/** Something happens, requests come, time passes; faults that go on end by chance. */
const act = (state: State): Step[] => {
  const { random } = state
  const isOfProcesses = state.hasProcesses && random.chance(0.3)
  const happens = isOfProcesses ? ofProcess(state) : random.pick(eventsOf[state.store])(state)
  const steps = [...happens]
  if (random.chance(0.85)) steps.push(load(state))
  if (random.chance(0.7)) steps.push(move(state))
  if (random.chance(0.5)) steps.push(load(state, 20))
  for (const id of [...state.faults.keys()])
    if (random.chance(0.55)) {
      state.faults.delete(id)
      steps.push({ do: 'heal', id })
      if (random.chance(0.5)) steps.push({ do: 'move', ms: random.between(200, 4_000) })
    }
  return steps
}
