// The number of instances that share the quotas and the provider's budget: the maximum that the heartbeats of the last minute
// counted. It is unknown until the other instances can count this one. Time without heartbeats does not count, nor does a jump
// of the clock: the first heartbeat after an outage may count this instance alone.

import type { Clock } from '../common/clock.ts'

export type FleetSize = {
  /** A heartbeat of this instance counted this many. */
  onHeartbeat(instances: number): void
  /** Undefined while others may not count this instance yet, or this instance may not count all of them. */
  atMost(): number | undefined
}

// Each instance counts the others with its heartbeat every five seconds. Of instances that start together, each knows all
// others with its first heartbeat after theirs. Elapsed time without a heartbeat proves nothing.
const knownAfterMs = 6_000
// A gap between two heartbeats counts no longer: the others may have had no heartbeat either.
const longestGapMs = 6_000
const rememberForMs = 60_000

export const createFleetSize = (clock: Clock): FleetSize => {
  let heartbeats: { instances: number; at: number }[] = []
  let lastAt: number | undefined
  // Time with heartbeats, since the first one.
  let elapsedMs = 0
  return {
    onHeartbeat: instances => {
      const now = clock.now()
      elapsedMs += Math.min(Math.max(0, now - (lastAt ?? now)), longestGapMs)
      lastAt = now
      heartbeats = [
        ...heartbeats.filter(({ at }) => elapsedMs - at < rememberForMs),
        { instances, at: elapsedMs },
      ]
    },
    atMost: () =>
      elapsedMs >= knownAfterMs ? Math.max(1, ...heartbeats.map(({ instances }) => instances)) : undefined,
  }
}
