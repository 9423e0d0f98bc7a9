// What may happen in a history: loads, moves of the clock, faults that begin, changes of keys and settings, each drawn by the
// random numbers of its seed. schedule.ts puts them in an order. Longer than 300 lines, because every kind of event is here, a
// few lines each.

import { requestsOf } from './mix.ts'
import type { Random } from './random.ts'
import type { LinkFault, ProviderFault, Settings, Step, StoreFault, StoreKind } from './steps.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

export type State = {
  readonly random: Random
  readonly store: StoreKind
  readonly hasCertificate: boolean
  readonly hasProcesses: boolean
  readonly gateways: number
  readonly skewOf: () => number
  readonly alive: Set<number>
  /** The place of each fault that goes on, by its id: one fault at a place at a time. */
  readonly faults: Map<string, string>
  readonly issued: string[]
  next: number
}

// Each of a load in turn may wait for a Redis that is away.
const mostInTurn = 10

export const load = ({ random, gateways, issued }: State, most = 36): Step => {
  const inTurn = random.chance(0.2)
  const count = inTurn ? mostInTurn : random.between(8, most)
  return { do: 'load', requests: requestsOf(random, count, gateways, issued), ...(inTurn && { inTurn }) }
}

/** Most of it with one key. */
export const loadOf = ({ random, gateways, issued }: State, key: string, count: number): Step => ({
  do: 'load',
  requests: requestsOf(random, count, gateways, issued, key),
})

export const move = ({ random }: State): Step => ({
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

export type Event = (state: State) => Step[]

export const begin = (state: State, place: string, step: (id: string) => Step): Step[] => {
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
    { kind: 'reorder', upToMs: random.between(2, 60) },
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
  begin(state, 'store', id => {
    const fault = state.random.pick<StoreFault>(['read-only', 'full', 'frozen'])
    return { do: 'store', id, fault }
  })

export const fullDisk: Event = state => begin(state, 'store', id => ({ do: 'store', id, fault: 'full' }))

/** Of the only gateway, whatever goes on. */
export const restart: Event = state => [
  { do: 'stop', gateway: 0 },
  { do: 'start', gateway: 0, skewMs: state.skewOf() },
]

/** The only gateway is killed while requests come, and started again. */
const crash: Event = state => [
  { do: 'kill', gateway: 0, under: killedUnder(state, 40) },
  { do: 'start', gateway: 0, skewMs: state.skewOf() },
]

/** A gateway of several stands still, for less or for longer than it waits for Redis. */
const suspend: Event = ({ random, gateways, alive, issued }) => [
  {
    do: 'suspend',
    gateway: random.pick([...alive]),
    ms: random.pick([random.between(50, 250), random.between(400, 1_500)]),
    moveMs: random.between(1, 20) * second,
    under: requestsOf(random, random.between(12, 40), gateways, issued),
  },
]

/** What happens to a process only. */
export const ofProcess: Event = state => (state.store === 'embedded' ? crash : suspend)(state)

const providerLink: Event = state =>
  begin(state, 'provider-link', id => ({ do: 'provider-link', id, fault: linkFault(state) }))

const providerModes = [
  ...['internal-error', 'bad-gateway', 'overloaded', 'reset', 'hang', 'stall', 'empty', 'cut-off'],
  ...['streaming-error', 'header-only', 'wrong-count', 'wrong-offset', 'missing-section', 'missing-variable'],
  ...['short-array', 'irregular-times', 'all-null', 'gaps', 'odd-values'],
  ...['concurrent-limit', 'minutely-limit', 'hourly-limit'],
]

const providerFault: Event = state =>
  begin(state, 'provider', id => {
    const { random } = state
    const fault = random.pick<ProviderFault>([
      { mode: random.pick(providerModes) },
      { mode: random.pick(providerModes) },
      { latencyMs: random.between(10, 400) },
    ])
    return { do: 'provider', id, fault }
  })

const killedUnder = ({ random, gateways, issued }: State, most: number) => ({
  requests: requestsOf(random, random.between(6, most), gateways, issued),
  afterMs: random.between(0, 15),
})

/** Of a gateway that runs, but never of the last one. */
const ofOne =
  (stepsOf: (state: State, gateway: number) => Step[]): Event =>
  state =>
    state.alive.size < 2 ? [] : stepsOf(state, state.random.pick([...state.alive]))

const stop = ofOne(({ alive }, gateway) => {
  alive.delete(gateway)
  return [{ do: 'stop', gateway }]
})

const kill = ofOne((state, gateway) => {
  state.alive.delete(gateway)
  return [{ do: 'kill', gateway, ...(state.random.chance(0.6) && { under: killedUnder(state, 24) }) }]
})

const rolling = ofOne((state, gateway) => [
  ...[{ do: 'stop', gateway } as const, load(state, 16)],
  { do: 'start', gateway, skewMs: state.skewOf() },
])

const start: Event = state => {
  const gateway = Array.from({ length: state.gateways }, (_, i) => i).find(i => !state.alive.has(i))
  if (gateway === undefined) return []
  state.alive.add(gateway)
  return [{ do: 'start', gateway, skewMs: state.skewOf() }]
}

// Longer than the checker leaves gateways to hear of a change on a machine that stands still for as long as a history may
// (undisturbed.ts).
export const heardAfterRealMs = 300
/** Until every gateway must know of a change: by the fleet's clock, and by the machine's, by which messages come. */
const heard = ({ random }: State): Step => ({
  do: 'move',
  ms: random.between(4, 12) * second,
  realMs: heardAfterRealMs,
})

const changeKey: Event = state => {
  const { random } = state
  const tier = random.pick(['free', 'starter', 'business'])
  if (random.chance(0.25) || state.issued.length === 0) {
    const key = `new${++state.next}`
    state.issued.push(key)
    const expires = random.chance(0.3) && { expiresAfterMs: random.between(5, 3_000) * second }
    return [{ do: 'issue', key, tier, ...expires }]
  }
  const key = random.pick(state.issued)
  const change = random.pick<Step>([
    { do: 'revoke', key },
    { do: 'tier', key, tier },
    { do: 'rotate', key, overlapMs: Math.max(0, random.between(-200, 600)) * second },
  ])
  if (random.chance(0.3)) return [change]
  // Known to all gateways before it changes, and requested when they must know of the change.
  const after = heard(state)
  return [loadOf(state, key, 12), change, after, loadOf(state, key, 12)]
}

const configure: Event = ({ random }) => {
  const settings = random.pick<Settings>([
    { 'quota.tiers.starter': String(random.between(20, 90)) },
    { 'quota.tiers.free': String(random.between(10, 40)) },
    { 'cache.freshFor': random.pick(['5m', '20m', '1h']) },
    { 'cache.staleFor': random.pick(['30m', '3h']) },
    { 'provider.budget.perMinute': random.pick(['20', '45', '']) },
    { 'provider.budget.perHour': random.pick(['180', '900', '']) },
    { 'cache.freshFor': 'soon' },
  ])
  return [{ do: 'configure', settings }]
}

/** Of the catalogue, or of the certificate where there is one. */
export const changeFiles: Event = state =>
  state.hasCertificate && state.random.chance(0.6)
    ? [{ do: 'certificate' }]
    : [{ do: 'catalogue', name: `Dhaka ${++state.next}` }]

const purgeOf = ({ random, alive }: State, kind: 'soft' | 'hard'): Step => ({
  do: 'purge',
  gateway: random.pick([...alive]),
  kind,
})
const purge: Event = state => [
  purgeOf(state, state.random.pick(['soft', 'hard', 'hard'])),
  ...(state.random.chance(0.6) ? [heard(state), load(state, 20)] : []),
]

/** All cells are loaded again and again for a minute or so, which a budget may have no room for. */
export const purgeOften: Event = state =>
  Array.from({ length: 5 }, (): Step[] => [
    purgeOf(state, 'hard'),
    { do: 'move', ms: state.random.between(8, 14) * second },
    load(state, 30),
  ]).flat()

const run: Event = ({ random }) => [{ do: 'run', fault: random.pick(['late', 'withdrawn', 'none']) }]

/** To shortly before the next midnight in the key's zone, and over it. */
export const midnight: Event = state => [
  { do: 'to-midnight', beforeMs: state.random.between(1, 30) * second },
  load(state),
  { do: 'move', ms: state.random.between(1, 60) * second },
  load(state),
]

/** A key that runs out is spent at all gateways while Redis is away for all. */
export const spendAlone: Event = state => {
  const key = state.random.pick(['some', 'few'])
  const before = loadOf(state, key, 9)
  const away = begin(state, 'link', id => ({
    do: 'link',
    id,
    gateways: Array.from({ length: state.gateways }, (_, i) => i),
    fault: { kind: 'refuse' },
  }))
  return away.length === 0 ? [] : [before, ...away, loadOf(state, key, 80)]
}

const empty: Event = () => [{ do: 'empty' }]
/** A key that runs out is spent before Redis loses its counts, and afterwards. */
export const spendAndEmpty: Event = state => {
  const key = state.random.pick(['some', 'few'])
  const back: Step = { do: 'move', ms: state.random.between(4, 9) * second }
  return [loadOf(state, key, 30), { do: 'empty' }, back, loadOf(state, key, 40)]
}
const failOver: Event = ({ random, gateways, issued }) => [
  {
    do: 'fail-over',
    kill: random.chance(0.5),
    under: requestsOf(random, random.between(8, 40), gateways, issued),
  },
]
const restartStore: Event = () => [{ do: 'restart-store' }]
const dropMessages: Event = () => [{ do: 'drop-messages' }]
const nothing: Event = () => []

const anyEvents: readonly Event[] = [
  ...[providerLink, providerFault, providerFault, run],
  ...[changeKey, changeKey, changeKey, configure, changeFiles, purge, purgeOften, midnight, nothing],
]
const fleetEvents: readonly Event[] = [
  ...[...anyEvents, changeKey, configure, providerLink, providerFault],
  ...[empty, spendAndEmpty, dropMessages, stop, kill, kill, start, start, rolling],
]
const replicatedEvents: readonly Event[] = [...fleetEvents, ...Array<Event>(6).fill(failOver)]

export const eventsOf: Readonly<Record<StoreKind, readonly Event[]>> = {
  redis: [
    ...[...fleetEvents, spendAlone, restartStore],
    ...[storeLink, storeLink, storeLink, storeFault, storeFault],
  ],
  sentinel: replicatedEvents,
  cluster: replicatedEvents,
  embedded: [...anyEvents, fullDisk, fullDisk, restart],
}
