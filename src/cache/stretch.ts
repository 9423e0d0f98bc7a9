// The stretch of freshness, computed at most once a second, because every read uses it. How large it is comes from the caller.

import type { Clock } from '../clock.ts'

export type Stretch = {
  /** The factor on freshness, at least 1. */
  current(): number
  /** Computes it anew with the next use. */
  renew(): void
}

const stretchEveryMs = 1_000

export const createStretch = (compute: () => number, clock: Clock): Stretch => {
  let stretch = 1
  let computedAt = Number.NEGATIVE_INFINITY
  return {
    current: () => {
      const now = clock.now()
      if (Math.abs(now - computedAt) >= stretchEveryMs) {
        computedAt = now
        stretch = compute()
      }
      return stretch
    },
    renew: () => {
      computedAt = Number.NEGATIVE_INFINITY
    },
  }
}
