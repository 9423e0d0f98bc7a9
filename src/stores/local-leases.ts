// Loads under way where one process is the whole fleet: the same contract as over Redis, kept in memory.

import type { LeaseStore } from './store.ts'

type Flight = { token: number; until: number }

export const createLocalLeases = (): LeaseStore => {
  const flights = new Map<string, Flight>()
  const listeners = new Set<(key: string | null, news: string) => void>()
  // Time passed, not time of day: what is held is held for so long, whatever clock the cache is on.
  const now = () => performance.now()
  let last = 0
  return {
    acquireLease: async (name, leaseMs) => {
      const remainingMs = (flights.get(name)?.until ?? 0) - now()
      if (remainingMs > 0) return { token: null, remainingMs }
      last += 1
      flights.set(name, { token: last, until: now() + leaseMs })
      return { token: last, remainingMs: 0 }
    },
    renewLease: async (name, token, leaseMs) => {
      const flight = flights.get(name)
      if (flight?.token !== token) return false
      flight.until = now() + leaseMs
      return true
    },
    releaseLease: async (name, token, news) => {
      if (flights.get(name)?.token === token) flights.delete(name)
      for (const listener of listeners) listener(name, news)
    },
    onLeaseReleased: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
