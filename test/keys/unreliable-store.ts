// A real store behind a connection that a test can cut: batches wait until the test decides their fate, as on a network
// that loses requests, loses replies and delivers late.

import type { Store, UsageBatch, UsageGrant, UsageMessage, UsageStore } from '../../src/stores/store.ts'
import { StoreError } from '../../src/stores/store.ts'

/** Answered; request lost; counted but reply lost; given up by the caller, and counted some time later. */
export type Fate = 'answered' | 'lost' | 'unanswered' | 'late'

type Pending = { batch: UsageBatch; resolve(grants: UsageGrant[]): void; reject(error: Error): void }

export type UnreliableStore = Pick<
  UsageStore,
  'partitionOf' | 'commit' | 'usedOn' | 'onUsage' | 'usageMessagesArrive' | 'time' | 'dropDays'
> & {
  /** Decides the fate of a batch in flight, if there is one. */
  decide(which: number, fate: Fate): Promise<void>
  /** Delivers a late batch, in any order. */
  land(which: number): Promise<void>
  inFlight(): number
  /** From now on everything fails at once; batches in flight meet this fate. */
  down(fate: Fate): Promise<void>
  up(): void
  /** No message arrives from now on, or each again. */
  mute(isSilent?: boolean): void
  /** Messages may have been lost; nothing else is wrong. */
  loseMessages(): void
}

// More in a row would be one instance cut off alone; local allowances assume a store that is away for everyone.
const maxInARow = 2

export const unreliable = (store: Store): UnreliableStore => {
  const listeners = new Set<(message: UsageMessage | 'lost') => void>()
  let pending: Pending[] = []
  let late: UsageBatch[] = []
  let isDown = false
  let isMuted = false
  const failures = new Map<string, number>()

  const count = async (batch: UsageBatch): Promise<UsageGrant[]> => {
    const results = await store.commit(batch)
    batch.entries.forEach(({ keyId, step }, i) => {
      const { used = 0, before = 0 } = results[i] ?? {}
      if (!isMuted && Math.floor(used / step) > Math.floor(before / step))
        for (const listener of listeners) listener({ keyId, day: batch.day, used })
    })
    return results
  }
  const meet = async ({ batch, resolve, reject }: Pending, fate: Fate): Promise<void> => {
    failures.set(batch.instance, fate === 'answered' ? 0 : (failures.get(batch.instance) ?? 0) + 1)
    if (fate === 'answered') return count(batch).then(resolve, reject)
    if (fate === 'unanswered') await count(batch).catch(() => {})
    if (fate === 'late') late.push(batch)
    reject(new StoreError(`the batch was ${fate}`))
  }

  return {
    partitionOf: () => 0,
    dropDays: store.dropDays,
    commit: batch =>
      new Promise((resolve, reject) => {
        if (isDown) reject(new StoreError('down'))
        else pending.push({ batch, resolve, reject })
      }),
    onUsage: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    usedOn: async (keyId, days) => {
      if (isDown) throw new StoreError('down')
      return store.usedOn(keyId, days)
    },
    usageMessagesArrive: () => !isMuted,
    time: async () => {
      if (isDown) throw new StoreError('down')
      return store.time()
    },
    inFlight: () => pending.length,
    decide: async (which, fate) => {
      const one = pending[which % Math.max(1, pending.length)]
      if (!one) return
      pending = pending.filter(each => each !== one)
      await meet(one, (failures.get(one.batch.instance) ?? 0) < maxInARow ? fate : 'answered')
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
      // On every connection the last messages come before its end.
      for (const listener of listeners) listener('lost')
    },
    mute: (isSilent = true) => {
      isMuted = isSilent
    },
    loseMessages: () => {
      for (const listener of listeners) listener('lost')
    },
    up: () => {
      isDown = false
    },
  }
}
