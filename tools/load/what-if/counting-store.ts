// A store that counts its calls: work that makes no calls waits for the clock. Reads of the purge log don't count, because each instance
// makes two a second. Heartbeats are kept in memory, because the embedded store has no fleet.

import type { Store } from 'abohawa/parts'

export const createCountingStore = (store: Store) => {
  let steps = 0
  let leases = 0
  const expiries = new Map<string, number>()
  const wanted = new Map<string, number>()
  const alive = new Map<string, number>()
  const heartbeat: Store['heartbeat'] = async ({ instance, aliveForMs, requested, wantedForMs, now }) => {
    alive.set(instance, now + aliveForMs)
    for (const name of requested) {
      // Keeps the latest last.
      wanted.delete(name)
      wanted.set(name, now)
    }
    for (const [name, at] of wanted) {
      if (at > now - wantedForMs) break
      wanted.delete(name)
    }
    const instances = [...alive.values()].filter(until => until > now).length
    return { instances, variants: 1, wanted: wanted.size }
  }
  const counted =
    <Given extends unknown[], Value>(step: (...given: Given) => Value) =>
    (...given: Given): Value => {
      steps += 1
      return step(...given)
    }
  const counting: Store = {
    ...store,
    readBytes: counted(store.readBytes),
    writeBytes: counted((key, bytes, expiresAt, holder) => {
      expiries.set(key, expiresAt)
      return store.writeBytes(key, bytes, expiresAt, holder)
    }),
    acquireLease: counted(async (...given) => {
      const reply = await store.acquireLease(...given)
      if (reply === 'acquired') leases += 1
      return reply
    }),
    releaseLease: counted((...given) => {
      leases -= 1
      return store.releaseLease(...given)
    }),
    heartbeat: counted(heartbeat),
    spend: counted(store.spend),
  }
  return {
    store: counting,
    steps: () => steps,
    /** Whether a load is running: a lease is held. */
    isBusy: () => leases > 0,
    /** The number of entries in the shared tier that have not expired. */
    entries: (now: number): number => {
      for (const [key, expiresAt] of expiries) if (expiresAt <= now) expiries.delete(key)
      return expiries.size
    },
  }
}
