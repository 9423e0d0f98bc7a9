// How many instances share the quotas and the provider's budget, on the safe side: the most that were alive of late, and
// nothing at all until the others know of this one.

import type { Clock } from '../clock.ts'

export type FleetSize = {
  /** The instances of the latest pulse. */
  saw(instances: number): void
  /** Undefined while others may not count this instance yet, or this one not all of them. */
  atMost(): number | undefined
}

// Each instance learns of the others every five seconds. One that started with others knows all of them by a pulse of its
// own that comes after theirs; without it the time that passes says nothing.
const knownAfterMs = 6_000
const rememberForMs = 60_000

export const createFleetSize = (clock: Clock): FleetSize => {
  let sightings: { instances: number; at: number }[] = []
  let firstAt: number | undefined
  let isKnown = false
  return {
    saw: instances => {
      const at = clock.now()
      firstAt ??= at
      isKnown ||= at - firstAt >= knownAfterMs
      sightings = [...sightings.filter(each => at - each.at < rememberForMs), { instances, at }]
    },
    atMost: () => (isKnown ? Math.max(1, ...sightings.map(({ instances }) => instances)) : undefined),
  }
}
