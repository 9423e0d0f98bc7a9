// The clock by which quotas are counted: the store's own, as this machine's clock and the difference between the two, so
// that instances whose clocks are off agree about midnight.

import type { Clock } from '../clock.ts'
import type { UsageStore } from '../stores/store.ts'

export type StoreClock = Clock & {
  /** Measures the difference again; a store that can't be asked leaves it as it is. */
  measure(): Promise<void>
  /** By how much the store's clock is ahead of this machine's, in ms. */
  offsetMs(): number
}

// A reply that took longer says too little about when it was given.
const slowestReplyMs = 250

export const createStoreClock = (store: Pick<UsageStore, 'time'>, clock: Clock): StoreClock => {
  let offset = 0
  return {
    now: () => clock.now() + offset,
    offsetMs: () => offset,
    measure: async () => {
      const asked = clock.now()
      const told = await store.time().catch(() => undefined)
      const heard = clock.now()
      if (told === undefined || heard - asked > slowestReplyMs) return
      // Told while we waited: the two clocks may well be the same.
      offset = told >= asked - 1 && told <= heard + 1 ? 0 : Math.round(told - (asked + heard) / 2)
    },
  }
}
