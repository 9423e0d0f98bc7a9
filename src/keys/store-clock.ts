// The store's clock: this machine's clock plus the measured offset. Quotas use it, so that instances whose clocks differ
// agree about midnight.

import { type Clock, clockAhead } from '../common/clock.ts'
import type { UsageStore } from '../stores/store.ts'

export type StoreClock = Clock & {
  /** Measures the offset again; keeps the former one when the store does not answer. */
  measure(): Promise<void>
  /** Whether it was ever measured; until then this machine's clock is all there is. */
  isMeasured(): boolean
  /** The store's clock minus this machine's, in ms. */
  offsetMs(): number
}

// With a slower reply, the instant at which the store read its clock is too uncertain.
const slowestReplyMs = 250

export const createStoreClock = (store: Pick<UsageStore, 'time'>, clock: Clock): StoreClock => {
  const offset = { ms: 0 }
  let isMeasured = false
  return {
    ...clockAhead(clock, offset),
    offsetMs: () => offset.ms,
    isMeasured: () => isMeasured,
    measure: async () => {
      const sentAt = clock.now()
      const storeTime = await store.time().catch(() => undefined)
      const receivedAt = clock.now()
      if (storeTime === undefined || receivedAt - sentAt > slowestReplyMs) return
      // Between the two instants: the clocks may well agree.
      const agrees = storeTime >= sentAt - 1 && storeTime <= receivedAt + 1
      offset.ms = agrees ? 0 : Math.round(storeTime - (sentAt + receivedAt) / 2)
      isMeasured = true
    },
  }
}
