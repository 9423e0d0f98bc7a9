// Leases of loads in memory, for a gateway without Redis: the contract of LeaseStore within one process.

import type { LeaseStore } from '../store.ts'

type Lease = { token: number; until: number }

export const createLocalLeases = (): LeaseStore => {
  const leases = new Map<string, Lease>()
  const listeners = new Set<(key: string | null, message: string) => void>()
  // Monotonic time: a lease keeps its length when the clock jumps.
  const now = () => performance.now()
  let last = 0
  return {
    acquireLease: async (name, leaseMs) => {
      const remainingMs = (leases.get(name)?.until ?? 0) - now()
      if (remainingMs > 0) return { token: null, remainingMs }
      last += 1
      leases.set(name, { token: last, until: now() + leaseMs })
      return { token: last, remainingMs: 0 }
    },
    renewLease: async (name, token, leaseMs) => {
      const lease = leases.get(name)
      if (lease?.token !== token) return false
      lease.until = now() + leaseMs
      return true
    },
    releaseLease: async (name, token, message) => {
      if (leases.get(name)?.token === token) leases.delete(name)
      for (const listener of listeners) listener(name, message)
    },
    onLeaseReleased: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
