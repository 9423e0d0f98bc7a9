// How many instances share the quotas and the provider's budget: the most that the heartbeats of the last minute
// counted. Unknown until the other instances can count this one.

import type { Clock } from '../clock.ts'

export type FleetSize = {
  /** A heartbeat of this instance counted this many. */
  onHeartbeat(instances: number): void
  /** Undefined while others may not count this instance yet, or this one not all of them. */
  atMost(): number | undefined
}

// Each instance counts the others with its heartbeat every five seconds. Of instances that start together, each knows all
// others with its first heartbeat after theirs. Elapsed time without a heartbeat proves nothing.
const knownAfterMs = 6_000
const rememberForMs = 60_000

export const createFleetSize = (clock: Clock): FleetSize => {
  let heartbeats: { instances: number; at: number }[] = []
  let firstAt: number | undefined
  let isKnown = false
  return {
    onHeartbeat: instances => {
      const at = clock.now()
      firstAt ??= at
      isKnown ||= at - firstAt >= knownAfterMs
      heartbeats = [...heartbeats.filter(each => at - each.at < rememberForMs), { instances, at }]
    },
    atMost: () => (isKnown ? Math.max(1, ...heartbeats.map(({ instances }) => instances)) : undefined),
  }
}
