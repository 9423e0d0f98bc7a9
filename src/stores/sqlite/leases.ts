// The leases of this process's loads, in memory: the embedded store has one gateway. Those that have ended are dropped, so that the
// leases of a provider outage, which end without a write, do not stay.

import { failureKeptMs } from '../records.ts'
import type { LeaseStore } from '../store.ts'

// A pass visits all leases, some ms at most.
const sweepEverySets = 500

type Leases = LeaseStore & {
  isHolder(key: string, holder: string): boolean
  /** How many are kept, with those that have ended and are not dropped yet. */
  size(): number
}

/** @param now in ms, from any beginning */
export const createLeases = (now: () => number): Leases => {
  const leases = new Map<string, { readonly value: string; readonly until: number }>()
  let sets = 0
  const heldValue = (key: string): string | undefined => {
    const lease = leases.get(key)
    return lease && lease.until > now() ? lease.value : undefined
  }
  const set = (key: string, value: string, ms: number): void => {
    sets += 1
    if (sets % sweepEverySets === 0)
      for (const [each, { until }] of leases) if (until <= now()) leases.delete(each)
    leases.set(key, { value, until: now() + ms })
  }
  const isHolder = (key: string, holder: string): boolean => heldValue(key) === holder
  return {
    isHolder,
    size: () => leases.size,
    acquireLease: async (key, holder, leaseMs, overFailure = false) => {
      const found = heldValue(key)
      const failed = found?.startsWith('{') ?? false
      if (found !== undefined && found !== holder && !(failed && overFailure))
        return failed ? { failure: found } : 'held'
      set(key, holder, leaseMs)
      return 'acquired'
    },
    renewLease: async (key, holder, leaseMs) => {
      if (!isHolder(key, holder)) return false
      set(key, holder, leaseMs)
      return true
    },
    releaseLease: async (key, holder, failure) => {
      if (!isHolder(key, holder)) return
      if (failure === undefined) leases.delete(key)
      else set(key, failure, failureKeptMs)
    },
  }
}
