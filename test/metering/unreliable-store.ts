// A real store behind a connection that a test can cut: trips wait until the test decides what becomes of them, as on a
// network that loses questions, loses answers and delivers late.

import type { Store, Taken, Trip, UsageStore, UsedNews } from '../../src/stores/store.ts'
import { StoreError } from '../../src/stores/store.ts'

/** Answered; asked in vain; counted but never answered; given up by who asked, and counted some time later. */
export type Fate = 'answered' | 'lost' | 'unanswered' | 'late'

type Pending = { trip: Trip; resolve(taken: Taken[]): void; reject(error: Error): void }

export type UnreliableStore = Pick<UsageStore, 'partitionOf' | 'take' | 'onUsed' | 'time'> & {
  /** Decides on a trip that is out, if there is one. */
  decide(which: number, fate: Fate): Promise<void>
  /** Counts what was late, in any order. */
  land(which: number): Promise<void>
  out(): number
  /** Everything fails at once from now on; what is out meets its fate. */
  down(fate: Fate): Promise<void>
  up(): void
  /** News may have been missed, and nothing else is wrong. */
  deafen(): void
}

// More in a row, with a store that is there for the others, would be one instance cut off alone: the shares are for a
// store that is away for everyone.
const mostInARow = 2

export const unreliable = (store: Store): UnreliableStore => {
  const listeners = new Set<(news: UsedNews | 'lost') => void>()
  let pending: Pending[] = []
  let late: Trip[] = []
  let isDown = false
  const failures = new Map<string, number>()

  const count = async (trip: Trip): Promise<Taken[]> => {
    const results = await store.take(trip)
    trip.takes.forEach(({ keyId, day, step }, i) => {
      const { used = 0, before = 0 } = results[i] ?? {}
      if (Math.floor(used / step) > Math.floor(before / step))
        for (const listener of listeners) listener({ keyId, day, used })
    })
    return results
  }
  const meet = async ({ trip, resolve, reject }: Pending, fate: Fate): Promise<void> => {
    failures.set(trip.instance, fate === 'answered' ? 0 : (failures.get(trip.instance) ?? 0) + 1)
    if (fate === 'answered') return count(trip).then(resolve, reject)
    if (fate === 'unanswered') await count(trip).catch(() => {})
    if (fate === 'late') late.push(trip)
    reject(new StoreError(`the trip was ${fate}`))
  }

  return {
    partitionOf: () => 0,
    take: trip =>
      new Promise((resolve, reject) => {
        if (isDown) reject(new StoreError('down'))
        else pending.push({ trip, resolve, reject })
      }),
    onUsed: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    time: async () => {
      if (isDown) throw new StoreError('down')
      return store.time()
    },
    out: () => pending.length,
    decide: async (which, fate) => {
      const one = pending[which % Math.max(1, pending.length)]
      if (!one) return
      pending = pending.filter(each => each !== one)
      await meet(one, (failures.get(one.trip.instance) ?? 0) < mostInARow ? fate : 'answered')
    },
    land: async which => {
      const one = late[which % Math.max(1, late.length)]
      if (!one) return
      late = late.filter(each => each !== one)
      await count(one).catch(() => {})
    },
    down: async fate => {
      isDown = true
      const all = pending
      pending = []
      for (const one of all) await meet(one, fate)
      // On every connection the last news come before its end.
      for (const listener of listeners) listener('lost')
    },
    deafen: () => {
      for (const listener of listeners) listener('lost')
    },
    up: () => {
      isDown = false
    },
  }
}
