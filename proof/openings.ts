// How a schedule begins, besides a load: with one decisive act and the fleet and settings that it needs. It comes first, because later
// a Redis that was away excuses much, so that the checker could not judge the act.

import {
  begin,
  changeFiles,
  type Event,
  fullDisk,
  heardAfterRealMs,
  load,
  loadOf,
  midnight,
  ofProcess,
  purgeOften,
  restart,
  type State,
  spendAlone,
  spendAndEmpty,
} from './events.ts'
import { points } from './mix.ts'
import {
  type PlannedRequest,
  type Protocol,
  type Settings,
  type Step,
  type StoreKind,
  statusPath,
} from './steps.ts'

export type Opening = {
  readonly stores?: readonly StoreKind[]
  readonly protocols?: readonly Protocol[]
  readonly settings?: Settings
  readonly constants?: Settings
  readonly hasProcesses?: true
  /** The clocks of gateways differ. */
  readonly isSkewed?: true
  /** They never do. */
  readonly isPunctual?: true
  readonly begin?: Event
}

const second = 1_000
// Then no connection can still be on its way back, which would excuse what others admit meanwhile.
const reportedAfterRealMs = 2_600
const single = `/weather/coords/${points[0]}`

const pass = ({ random }: State, from: number, to: number): Step => ({
  do: 'move',
  ms: random.between(from, to) * second,
  realMs: heardAfterRealMs,
})

/** Requests of one path each, for all gateways in turn. */
const requestsFor = (key: string, paths: readonly string[], gateways: number): PlannedRequest[] =>
  paths.map((path, i) => ({ gateway: i % gateways, key, path }))

/** A new key, known to all gateways; that of the tier free has 24 units. */
const issued = (state: State, tier: string, more: { expiresAfterMs?: number } = {}) => {
  const key = `new${++state.next}`
  const steps: Step[] = [{ do: 'issue', key, tier, ...more }, pass(state, 4, 6)]
  return { key, steps }
}

/** Lists leave a key fewer units than the next list takes, so that it is refused and the last units go to single places. */
const spentByLists: Event = state => {
  const { key, steps } = issued(state, 'free')
  const list = (size: number): string =>
    `/weather?places=${points.slice(0, size).map(point => `coords/${point}`)}`
  const paths = [...Array<string>(7).fill(list(3)), list(4), ...Array<string>(4).fill(single)]
  return [...steps, { do: 'load', requests: requestsFor(key, paths, state.gateways), inTurn: true }]
}

/** Each gateway has counted six units of a key when Redis loses them. Once all must have reported, one is asked for more than the rest. */
const lostCounts: Event = state => {
  const { key, steps } = issued(state, 'free')
  const before = requestsFor(key, Array(6 * state.gateways).fill(single), state.gateways)
  return [
    ...steps,
    { do: 'load', requests: before },
    { do: 'empty' },
    // First connections come back, then the gateways wait for each other.
    { do: 'move', ms: second, realMs: reportedAfterRealMs },
    { do: 'move', ms: 11 * second },
    { do: 'load', requests: requestsFor(key, Array(24).fill(single), 1) },
  ]
}

/** Ends every fault that goes on. */
const heal = ({ faults }: State): Step[] => {
  const ids = [...faults.keys()]
  faults.clear()
  return ids.map(id => ({ do: 'heal', id }))
}

/** A new key is known to all gateways before it changes, and requested when they must know of the change. */
const changed =
  (changesOf: (state: State, key: string) => Step[]): Event =>
  state => {
    const { key, steps } = issued(state, 'starter')
    return [
      ...steps,
      loadOf(state, key, 16),
      ...changesOf(state, key),
      pass(state, 4, 12),
      loadOf(state, key, 16),
    ]
  }

/** Also with clocks that differ: a secret that is replaced without an overlap, and then its key. */
const revoked: Event = state => {
  const { key, steps } = issued(state, 'business')
  return [
    ...steps,
    loadOf(state, key, 16),
    { do: 'rotate', key, overlapMs: 0 },
    pass(state, 4, 12),
    loadOf(state, key, 24),
    { do: 'revoke', key },
    pass(state, 4, 12),
    loadOf(state, key, 16),
  ]
}
const moved = changed(({ random }, key) => [
  { do: 'tier', key, tier: random.pick(['free', 'business']) },
  { do: 'configure', settings: { 'quota.tiers.business': String(random.between(200, 390)) } },
])

/** A key is used before and after its expiry. */
const expired: Event = state => {
  const { key, steps } = issued(state, 'starter', { expiresAfterMs: 20 * second })
  return [...steps, loadOf(state, key, 16), pass(state, 30, 40), loadOf(state, key, 16)]
}
/** Both secrets of a key are used while the old one is valid, and afterwards. */
const rotated: Event = state => {
  const { key, steps } = issued(state, 'business')
  state.issued.push(key)
  return [
    ...steps,
    loadOf(state, key, 12),
    { do: 'rotate', key, overlapMs: 60 * second },
    pass(state, 6, 12),
    loadOf(state, key, 24),
    pass(state, 70, 90),
    loadOf(state, key, 24),
  ]
}

/** A key with a limit by the second sends far more, to all gateways at once and after a while again. */
const paced: Event = state => {
  const { key, steps } = issued(state, 'paced')
  state.issued.push(key)
  return [...steps, ...Array.from({ length: 3 }, () => [loadOf(state, key, 40), pass(state, 1, 4)]).flat()]
}

/** Fails for longer than the circuit stays closed; all cells are requested meanwhile, and then what is said of that. */
const providerFails: Event = state => [
  ...begin(state, 'provider', id => ({
    do: 'provider',
    id,
    fault: { mode: state.random.pick(['internal-error', 'bad-gateway', 'reset', 'streaming-error']) },
  })),
  ...Array.from({ length: 4 }, () => [
    { do: 'purge', gateway: 0, kind: 'hard' } as const,
    pass(state, 6, 15),
    load(state),
  ]).flat(),
  // Longer than a status page is kept.
  pass(state, 6, 9),
  { do: 'load', requests: requestsFor('plenty', Array(state.gateways).fill(statusPath), state.gateways) },
  ...heal(state),
]

/**
 * A gateway stands still in the middle of its loads, for longer than its leases, and its answers come meanwhile. Another one loads
 * the same cells, and a third one reads what both have left in Redis.
 */
const overtaken: Event = state => {
  // Not in the cells that are kept warm: the third one may have read these already.
  const at = (gateway: number): PlannedRequest[] =>
    points.slice(2).map(point => ({ gateway, key: 'plenty', path: `/weather/coords/${point}` }))
  const still = { gateway: 0, afterMs: 300, ms: 1_200, moveMs: second } as const
  return [
    { do: 'purge', gateway: 0, kind: 'hard' },
    pass(state, 4, 6),
    { do: 'provider', id: 'slow', fault: { latencyMs: 600 } },
    { do: 'suspend', ...still, under: at(0), meanwhile: at(1) },
    { do: 'heal', id: 'slow' },
    { do: 'load', requests: at(2) },
  ]
}

export const openings: readonly Opening[] = [
  { begin: spentByLists },
  {
    stores: ['redis'],
    settings: { 'quota.whenStoreIsDown': 'share' },
    begin: state => [...spendAlone(state), pass(state, 1, 9), load(state), ...heal(state)],
  },
  { isSkewed: true, begin: revoked },
  { isPunctual: true, begin: expired },
  { isPunctual: true, begin: rotated },
  {
    isPunctual: true,
    settings: {
      'provider.budget.perMinute': '16',
      'provider.budget.perHour': '',
      'provider.budget.perDay': '',
    },
    begin: purgeOften,
  },
  { stores: ['redis'], isSkewed: true, begin: midnight },
  { settings: { 'provider.budget.perMinute': '60', 'provider.budget.perDay': '' }, begin: providerFails },
  { stores: ['embedded'], begin: state => [...fullDisk(state), load(state), ...restart(state), load(state)] },
  { begin: moved },
  {
    stores: ['redis', 'redis', 'embedded'],
    settings: { 'quota.tiers.paced': '100000', 'quota.rates.paced': '{ perSecond: 4 }' },
    begin: paced,
  },
  { protocols: ['https', 'http2'], begin: changeFiles },
  { stores: ['redis'], begin: spendAndEmpty },
  { stores: ['redis'], settings: { 'quota.whenStoreIsDown': 'refuse' }, begin: lostCounts },
  {
    stores: ['redis', 'embedded'],
    hasProcesses: true,
    begin: state => [...ofProcess(state), load(state)],
  },
  {
    stores: ['redis'],
    hasProcesses: true,
    isPunctual: true,
    // So that a call outlives its lease, and nothing but the lease keeps its answer out.
    constants: {
      ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '30s',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '30s',
    },
    settings: {
      'provider.timeout': '30s',
      'provider.budget.perMinute': '',
      'provider.budget.perHour': '',
      'provider.budget.perDay': '',
    },
    begin: overtaken,
  },
]
