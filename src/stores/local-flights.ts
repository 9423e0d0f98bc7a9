// Loads under way where one process is the whole fleet: the same contract as over Redis, kept in memory.

import type { FlightStore } from './store.ts'

type Flight = { token: number; until: number }

export const createLocalFlights = (): FlightStore => {
  const flights = new Map<string, Flight>()
  const listeners = new Set<(key: string | null, news: string) => void>()
  // Time passed, not time of day: what is held is held for so long, whatever clock the cache is on.
  const now = () => performance.now()
  let last = 0
  return {
    beginFlight: async (name, holdMs) => {
      const heldForMs = (flights.get(name)?.until ?? 0) - now()
      if (heldForMs > 0) return { token: null, heldForMs }
      last += 1
      flights.set(name, { token: last, until: now() + holdMs })
      return { token: last, heldForMs: 0 }
    },
    holdFlight: async (name, token, holdMs) => {
      const flight = flights.get(name)
      if (flight?.token !== token) return false
      flight.until = now() + holdMs
      return true
    },
    endFlight: async (name, token, news) => {
      if (flights.get(name)?.token === token) flights.delete(name)
      for (const listener of listeners) listener(name, news)
    },
    onFlightEnd: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
