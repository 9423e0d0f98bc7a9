// How many instances share the quotas, on the safe side: the most that were alive of late, and nothing at all until the
// others can know of this one.

import type { Clock } from '../clock.ts'

export type FleetSize = {
  /** The instances of the latest pulse. */
  saw(instances: number): void
  /** Undefined while others may not count this instance yet. */
  atMost(): number | undefined
}

// Each instance learns of the others every five seconds.
const knownAfterMs = 6_000
const rememberForMs = 60_000

export const createFleetSize = (clock: Clock): FleetSize => {
  let sightings: { instances: number; at: number }[] = []
  let firstAt: number | undefined
  return {
    saw: instances => {
      const at = clock.now()
      firstAt ??= at
      sightings = [...sightings.filter(each => at - each.at < rememberForMs), { instances, at }]
    },
    atMost: () => {
      if (firstAt === undefined || clock.now() - firstAt < knownAfterMs) return undefined
      return Math.max(1, ...sightings.map(({ instances }) => instances))
    },
  }
}
