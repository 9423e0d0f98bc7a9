// Leases of loads in memory, for a gateway without Redis: the contract of LeaseStore within one process.

import { failureKeptMs } from '../records.ts'
import type { LeaseStore } from '../store.ts'

export type LocalLeases = LeaseStore & { isHolder(key: string, holder: string): boolean }

export const createLocalLeases = (): LocalLeases => {
  const leases = new Map<string, { readonly value: string; readonly until: number }>()
  // Monotonic time: a lease keeps its length when the clock jumps.
  const now = () => performance.now()
  const heldValue = (key: string): string | undefined => {
    const lease = leases.get(key)
    return lease && lease.until > now() ? lease.value : undefined
  }
  const set = (key: string, value: string, ms: number): void =>
    void leases.set(key, { value, until: now() + ms })
  const isHolder = (key: string, holder: string): boolean => heldValue(key) === holder
  return {
    isHolder,
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
