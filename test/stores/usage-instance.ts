// An instance from the store's point of view: it remembers its admitted units, reports them with every batch, and numbers
// its batches. And its heartbeats.
import { randomUUID } from 'node:crypto'
import type { FleetStore, Store, UsageBatch, UsageEntry, UsageGrant } from '../../src/stores/store.ts'
import { until } from '../support/until.ts'

const now = Date.now()

/** An entry with what its batch says of its day. */
type DayEntry = UsageEntry & Pick<UsageBatch, 'day' | 'endsAt' | 'keepUntil'>

/** One unit of three, of a day that is half over. The day is far ahead: Redis drops the counts of a past one at once. */
export const anEntry: DayEntry = {
  ...{ keyId: 'key_1', day: '2126-11-21', units: 1, limit: 3 },
  ...{ admitted: 0, confirmed: 0, step: 1 },
  endsAt: now + 43_200_000,
  keepUntil: now + 86_400_000,
}

/** A response of that day. */
export const aDetail = {
  ...{ keyId: 'key_1', day: anEntry.day, endpoint: 'weather', statusClass: '2xx', count: 1 },
  keepUntil: anEntry.keepUntil,
}

/** A batch of entries of one day. */
export const batchOf = (instance: string, sequence: number, entries: readonly DayEntry[]): UsageBatch => {
  const { day, endsAt, keepUntil } = entries[0] ?? anEntry
  return { instance, sequence, day, endsAt, keepUntil, entries }
}

/** Returns a function that commits a batch of entries like `anEntry`, with the given fields changed. */
export const instanceOn = (
  store: Store,
  instance: string,
): ((...given: Partial<DayEntry>[]) => Promise<UsageGrant[]>) => {
  const admitted = new Map<string, number>()
  let sequence = 0
  return async (...given) => {
    const entries = given.map(each => {
      const whole = { ...anEntry, ...each }
      const known = admitted.get(`${whole.keyId} ${whole.day}`) ?? 0
      return { ...whole, admitted: each.admitted ?? known, confirmed: each.confirmed ?? known }
    })
    sequence += 1
    const results = await store.commit(batchOf(instance, sequence, entries))
    entries.forEach((each, i) => {
      admitted.set(`${each.keyId} ${each.day}`, each.admitted + (results[i]?.granted ?? 0))
    })
    return results
  }
}

/** Ids of keys that are counted in one step. */
export const keysOfOnePartition = (store: Store, count: number): string[] =>
  Array.from({ length: 1_000 }, (_, i) => `key_${i}`)
    .filter(id => store.partitionOf(id) === store.partitionOf('key_0'))
    .slice(0, count)

/** Resolves once a message that this store publishes comes back to it. */
export const messagesArrive = async (store: Store): Promise<void> => {
  let arrived = false
  const stop = store.onUsage(message => {
    arrived ||= message !== 'lost'
  })
  const keyId = randomUUID()
  const commit = instanceOn(store, keyId)
  await until('messages arrive', async () => {
    await commit({ keyId, limit: 1e9 }).catch(() => {})
    return arrived
  })
  stop()
}

type Heartbeat = Parameters<FleetStore['heartbeat']>[0]

/** Alive for a minute, and in want of nothing. */
export const heartbeatOf = (instance: string, given: Partial<Heartbeat> = {}): Heartbeat => ({
  ...{ instance, aliveForMs: 60_000, settings: 'a', topic: 'q', requested: [], wantedForMs: 60_000 },
  ...{ report: '{}', now: Date.now(), ...given },
})
