// A seed → the schedule of one history: a fleet, and steps of load, time and faults that begin and end. Pure: equal seeds give
// equal schedules. Which promises they are judged by is in promises.ts; nothing here knows the product.
// Longer than 300 lines, because every kind of event is here, a few lines each.

import { createRandom, type Random } from '../fuzz/random.ts'
import { requestsOf } from './mix.ts'
import type { LinkFault, ProviderFault, Schedule, Settings, Step, StoreFault } from './steps.ts'

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

export const scheduleOf = (seed: number): Schedule => {
  const random = createRandom(seed, 'proof')
  const store = random.chance(0.12) ? 'embedded' : 'redis'
  const gateways = store === 'redis' ? 3 : 1
  const isSkewed = random.chance(0.3)
  const skewOf = (): number => (isSkewed ? random.between(-90, 90) * second : 0)
  const start = startOf(random)
  const settings = settingsOf(random, store === 'redis')
  const state: State = {
    random,
    store,
    gateways,
    skewOf,
    alive: new Set(),
    faults: new Map(),
    issued: [],
    next: 0,
  }
  for (let i = 0; i < gateways; i++) state.alive.add(i)
  const steps: Step[] = [{ do: 'move', ms: 13 * second }, load(state), load(state)]
  const acts = random.between(5, 11)
  for (let i = 0; i < acts; i++) steps.push(...act(state))
  return {
    seed,
    store,
    start,
    skews: Array.from({ length: gateways }, skewOf),
    settings,
    keys,
    steps,
  }
}

type State = {
  readonly random: Random
  readonly store: 'redis' | 'embedded'
  readonly gateways: number
  readonly skewOf: () => number
  readonly alive: Set<number>
  /** The place of each fault that goes on, by its id: one fault at a place at a time. */
  readonly faults: Map<string, string>
  readonly issued: string[]
  next: number
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

// Each of a load in turn may wait for a Redis that is away.
const mostInTurn = 10

const load = ({ random, gateways, issued }: State, most = 36): Step => {
  const inTurn = random.chance(0.2)
  const count = inTurn ? mostInTurn : random.between(8, most)
  return {
    do: 'load',
    requests: requestsOf(random, count, gateways, issued),
    ...(inTurn && { inTurn }),
  }
}

const move = ({ random }: State): Step => ({
  do: 'move',
  ms: random.pick([
    random.between(300, 3_000),
    random.between(3, 20) * second,
    random.between(20, 70) * second,
    random.between(1, 15) * minute,
    random.between(15, 80) * minute,
    random.between(1, 7) * hour,
  ]),
})

/** Something happens, requests come, time passes; faults that go on end by chance. */
const act = (state: State): Step[] => {
  const { random } = state
  const happens = random.pick(state.store === 'redis' ? fleetEvents : embeddedEvents)(state)
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

type Event = (state: State) => Step[]

const begin = (state: State, place: string, step: (id: string) => Step): Step[] => {
  if ([...state.faults.values()].includes(place)) return []
  const id = `f${++state.next}`
  state.faults.set(id, place)
  return [step(id)]
}

const linkFault = ({ random }: State): LinkFault =>
  random.pick<LinkFault>([
    { kind: 'delay', ms: random.between(5, 60) },
    { kind: 'delay', ms: random.between(250, 400) },
    { kind: 'refuse' },
    { kind: 'refuse' },
    { kind: 'reset' },
    { kind: 'cut', afterBytes: random.between(1, 4_000) },
    { kind: 'trickle', bytes: random.between(1, 40), everyMs: random.between(1, 5) },
    { kind: 'black-hole' },
    { kind: 'corrupt', afterBytes: random.between(1, 2_000) },
  ])

const storeLink: Event = state =>
  begin(state, 'link', id => {
    const { random, gateways } = state
    const all = Array.from({ length: gateways }, (_, i) => i)
    const chosen = random.chance(0.5) ? all : random.some(all, random.between(1, gateways - 1)).sort()
    return { do: 'link', id, gateways: chosen, fault: linkFault(state) }
  })

const storeFault: Event = state =>
  begin(state, 'store', id => ({
    do: 'store',
    id,
    fault: state.random.pick<StoreFault>(['read-only', 'full', 'frozen']),
  }))

const fullDisk: Event = state => begin(state, 'store', id => ({ do: 'store', id, fault: 'full' }))

/** Of the only gateway, whatever goes on. */
const restart: Event = state => [
  { do: 'stop', gateway: 0 },
  { do: 'start', gateway: 0, skewMs: state.skewOf() },
]

const providerLink: Event = state =>
  begin(state, 'provider-link', id => ({ do: 'provider-link', id, fault: linkFault(state) }))

const providerModes = [
  'internal-error',
  'bad-gateway',
  'overloaded',
  'reset',
  'hang',
  'stall',
  'empty',
  'cut-off',
  'streaming-error',
  'header-only',
  'wrong-count',
  'wrong-offset',
  'missing-section',
  'missing-variable',
  'short-array',
  'irregular-times',
  'all-null',
  'gaps',
  'concurrent-limit',
  'minutely-limit',
  'hourly-limit',
] as const

const providerFault: Event = state =>
  begin(state, 'provider', id => ({
    do: 'provider',
    id,
    fault: state.random.pick<ProviderFault>([
      { mode: state.random.pick(providerModes) },
      { mode: state.random.pick(providerModes) },
      { latencyMs: state.random.between(10, 400) },
    ]),
  }))

/** A gateway that runs, but never the last one. */
const oneOf = ({ random, alive }: State): number | undefined =>
  alive.size < 2 ? undefined : random.pick([...alive])

const stop: Event = state => {
  const gateway = oneOf(state)
  if (gateway === undefined) return []
  state.alive.delete(gateway)
  return [{ do: 'stop', gateway }]
}

const kill: Event = state => {
  const gateway = oneOf(state)
  if (gateway === undefined) return []
  state.alive.delete(gateway)
  const { random, gateways, issued } = state
  const under = requestsOf(random, random.between(6, 24), gateways, issued)
  return [{ do: 'kill', gateway, ...(random.chance(0.6) && { under }) }]
}

const start: Event = state => {
  const gateway = Array.from({ length: state.gateways }, (_, i) => i).find(i => !state.alive.has(i))
  if (gateway === undefined) return []
  state.alive.add(gateway)
  return [{ do: 'start', gateway, skewMs: state.skewOf() }]
}

const rolling: Event = state => {
  const gateway = oneOf(state)
  if (gateway === undefined) return []
  return [{ do: 'stop', gateway }, load(state, 16), { do: 'start', gateway, skewMs: state.skewOf() }]
}

const changeKey: Event = state => {
  const { random } = state
  if (random.chance(0.4) || state.issued.length === 0) {
    const key = `new${++state.next}`
    state.issued.push(key)
    return [{ do: 'issue', key, tier: random.pick(['free', 'starter', 'business']) }]
  }
  const key = random.pick(state.issued)
  if (random.chance(0.6)) return [{ do: 'revoke', key }, ...(random.chance(0.6) ? afterwards(state) : [])]
  return [{ do: 'tier', key, tier: random.pick(['free', 'starter', 'business']) }]
}

const configure: Event = ({ random }) => [
  {
    do: 'configure',
    settings: random.pick<Settings>([
      { 'quota.tiers.starter': String(random.between(20, 90)) },
      { 'quota.tiers.free': String(random.between(10, 40)) },
      { 'cache.freshFor': random.pick(['5m', '20m', '1h']) },
      { 'cache.staleFor': random.pick(['30m', '3h']) },
      { 'provider.budget.perMinute': random.pick(['20', '45', '']) },
      { 'provider.budget.perHour': random.pick(['180', '900', '']) },
      { 'cache.freshFor': 'soon' },
    ]),
  },
]

/** Until every gateway must know of a change, and what comes then. */
const afterwards = (state: State): Step[] => [
  { do: 'move', ms: state.random.between(4, 12) * second },
  load(state, 20),
]

const purgeOf = ({ random, alive }: State, kind: 'soft' | 'hard'): Step => ({
  do: 'purge',
  gateway: random.pick([...alive]),
  kind,
})
const purge: Event = state => [
  purgeOf(state, state.random.pick(['soft', 'hard', 'hard'])),
  ...(state.random.chance(0.6) ? afterwards(state) : []),
]

/** All cells are loaded twice within some seconds, which a budget may have no room for. */
const purgeTwice: Event = state => [
  purgeOf(state, 'hard'),
  ...afterwards(state),
  purgeOf(state, 'hard'),
  ...afterwards(state),
]

const run: Event = ({ random }) => [{ do: 'run', fault: random.pick(['late', 'withdrawn', 'none']) }]

/** To shortly before the next midnight in the key's zone, and over it. */
const midnight: Event = state => [
  { do: 'to-midnight', beforeMs: state.random.between(1, 30) * second },
  load(state),
  { do: 'move', ms: state.random.between(1, 60) * second },
  load(state),
]

const empty: Event = () => [{ do: 'empty' }]
const restartStore: Event = () => [{ do: 'restart-store' }]
const dropMessages: Event = () => [{ do: 'drop-messages' }]
const nothing: Event = () => []

const fleetEvents: readonly Event[] = [
  ...[storeLink, storeLink, storeLink, storeFault, storeFault, restartStore, empty, dropMessages],
  ...[providerLink, providerLink, providerFault, providerFault, providerFault, run],
  ...[stop, kill, kill, start, start, rolling],
  ...[changeKey, changeKey, changeKey, changeKey, configure, configure, purge, purgeTwice, midnight, nothing],
]

const embeddedEvents: readonly Event[] = [
  ...[fullDisk, fullDisk, restart],
  ...[providerLink, providerFault, providerFault, run],
  ...[changeKey, changeKey, changeKey, configure, purge, purgeTwice, midnight, nothing],
]
