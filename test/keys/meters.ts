// Meters for tests: on any store, on a Redis of the test, and a single partition on a store that a test makes up.

import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { type Clock, systemClock } from '../../src/common/clock.ts'
import type { Count, DecisionCallback, QuotaDecision } from '../../src/keys/count.ts'
import { Meter, type MeterObserver, type MeterParts } from '../../src/keys/meter.ts'
import { Partition, type PartitionParts } from '../../src/keys/partition.ts'
import { localDays } from '../../src/keys/window.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { patient } from '../support/redis-store.ts'
import { patienceMs, until } from '../support/until.ts'

/** The decision that a callback is called with, as a promise. */
const promised = (take: (callback: DecisionCallback) => void): Promise<QuotaDecision> =>
  new Promise((resolve, reject) => {
    take((error, decision) => (decision ? resolve(decision) : reject(error)))
  })

export const calendar = createCalendar('Asia/Dhaka')
const dayMs = 86_400_000

type Given = Partial<Omit<MeterParts, 'observer'>> & { observer?: Partial<MeterObserver> }

/** A meter of one instance with local allowances, whose counts are kept for a day, unless something else is given. */
export const meterOn = (store: MeterParts['store'], clock: Clock, given: Given = {}): Meter =>
  new Meter({
    store,
    clock,
    whenStoreIsDown: 'share',
    instances: () => 1,
    windows: localDays(calendar, given.keepUsageForMs ?? dayMs),
    keepUsageForMs: dayMs,
    // A busy machine must not look like a store that is away.
    answersWithinMs: patienceMs,
    ...given,
    observer: {
      storeAway: () => {},
      storeBack: () => {},
      unitsLost: () => {},
      nearLimit: () => {},
      ...given.observer,
    },
  })

/** Takes units, one unless told otherwise. @throws StoreError as `take` does */
export const consume = (
  meter: Pick<Meter, 'consume'>,
  client: Parameters<Meter['consume']>[0],
  arrivedAt: number,
  units = 1,
): Promise<QuotaDecision> => promised(callback => meter.consume(client, arrivedAt, units, callback))

/** An embedded store in memory that ends with its test. */
export const storeInMemory = (t: Pick<Test, 'teardown'>, clock: Clock) => {
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  return store
}

/** The day of meters on a Redis, which lasts longer than any test. */
const day = '2026-11-21'
const endsAt = Date.now() + dayMs / 2

/** A meter on a Redis, with the store behind it, the requests of one key, and why messages do not arrive; all end with the test. */
export const meterOnRedis = async (t: Test, url: string, given: Given = {}) => {
  const faults: (string | null)[] = []
  const store = await openRedisStore(
    { ...patient, url, prefix: 'x:' },
    { redisAway: () => {}, redisBack: () => {}, redisMessages: fault => faults.push(fault) },
  )
  const { clock = systemClock } = given
  const windows = localDays({ dayOf: () => day, nextMidnight: () => endsAt }, dayMs)
  const meter = meterOn(store, clock, { windows, ...given })
  t.teardown(async () => {
    await meter.close()
    await store.close()
  })
  /** How many of so many requests are admitted. */
  const admit = async (times = 1, limit = 100): Promise<number> => {
    const request = () => consume(meter, { keyId: 'key_1', limit }, clock.now())
    const ended = await Promise.allSettled(Array.from({ length: times }, request))
    return ended.filter(each => each.status === 'fulfilled' && each.value.allowed).length
  }
  const used = async (keyId = 'key_1') => (await store.usedOn(keyId, [day]))[0]
  return { store, meter, faults, admit, used }
}

/** Ends the subscriptions of so many stores, each of which has one by then: before, there would be nothing to lose. */
export const endSubscriptions = async (raw: Redis, stores: number) => {
  const listed = async () => String(await raw.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
  await until('each is subscribed', async () => (await listed()).split('id=').length - 1 === stores, {
    everyMs: 20,
  })
  await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
}

const forEver = Number.POSITIVE_INFINITY
const window = { name: day, startsAt: 0, endsAt: forEver, keepUntil: forEver }
/** The count of a key of which nothing is known. */
export const newCount = (keyId: string): Count => ({
  ...{ keyId, window, limit: 1_000, step: 16, admitted: 0, confirmed: 0 },
  ...{ lastKnown: undefined, knownSince: 0, heard: 0 },
})

type OfStore = Partial<Pick<PartitionParts['store'], 'usedOn' | 'usageMessagesArrive' | 'time'>>
type Made = Partial<PartitionParts> & OfStore & { now?: () => number }
/** A partition on a store that a test makes up, and a count of one key in it. `now`: the time by which a batch grows, in ms */
export const oneCount = (
  commit: PartitionParts['store']['commit'],
  {
    usedOn = async () => [0],
    usageMessagesArrive = () => true,
    time = async () => 0,
    now,
    ...parts
  }: Made = {},
) => {
  const count = newCount('key_1')
  const partition = new Partition(
    {
      instance: 'one',
      // In a cluster, another server than that of the counts may answer `time` and bring messages.
      store: { commit, usedOn, usageMessagesArrive, time },
      whenStoreIsDown: 'share',
      instances: () => 1,
      latestStart: () => 0,
      counts: () => [count].values(),
      clock: manualClock('2026-11-21T12:00:00Z'),
      observer: { stopped: () => {}, resumed: () => {}, counted: () => {} },
      ...parts,
    },
    now,
  )
  return {
    partition,
    count,
    admit: (units = 1) => promised(callback => partition.consume(count, 1_000, units, callback)),
  }
}
