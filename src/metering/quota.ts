// Takes one unit of a client's daily quota per request. The store's clock decides the local day of a request, so that
// instances whose clocks differ agree about midnight. An exhausted quota is a decision (`allowed: false`), not an error;
// counting is the meter's.

import { type Calendar, hourMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { UsageStore } from '../stores/store.ts'
import type { Client } from './authentication.ts'
import type { Meter } from './meter.ts'
import type { MeteredDay, QuotaDecision } from './partition.ts'

export type Quota = {
  /** The instant that decides which day a request belongs to. */
  now(): number
  /** Takes one unit. @throws StoreError when the store is away and the local allowance is spent */
  consume(client: Client, arrivedAt: number): Promise<QuotaDecision>
  /** The next local midnight after an instant. */
  resetAfter(instant: number): number
}

/**
 * @param clock the store's
 * @param keepUsageForMs how long a day's count is kept after the end of the day
 */
export const createQuota = (
  meter: Pick<Meter, 'admit'>,
  calendar: Calendar,
  clock: Clock,
  keepUsageForMs: number,
): Quota => {
  const dayAt = (instant: number): MeteredDay => {
    const endsAt = calendar.nextMidnight(instant)
    // At least an hour past midnight: requests of the old day may still be in flight then.
    return { day: calendar.dayOf(instant), endsAt, keepUntil: endsAt + Math.max(hourMs, keepUsageForMs) }
  }

  return {
    now: clock.now,
    resetAfter: calendar.nextMidnight,
    consume: ({ keyId, limit }, arrivedAt) => meter.admit(keyId, limit, dayAt(arrivedAt)),
  }
}

/** This machine's clock plus the measured offset of the store's. */
export type StoreClock = Clock & {
  /** Measures the offset again; keeps the former one when the store does not answer. */
  measure(): Promise<void>
  /** How far the store's clock is ahead of this machine's, in ms. */
  offsetMs(): number
}

// A slower reply does not tell well enough when the store read its clock.
const slowestReplyMs = 250

export const createStoreClock = (store: Pick<UsageStore, 'time'>, clock: Clock): StoreClock => {
  let offset = 0
  return {
    now: () => clock.now() + offset,
    offsetMs: () => offset,
    measure: async () => {
      const sentAt = clock.now()
      const storeTime = await store.time().catch(() => undefined)
      const receivedAt = clock.now()
      if (storeTime === undefined || receivedAt - sentAt > slowestReplyMs) return
      // Between the two instants: the clocks may well agree.
      const agrees = storeTime >= sentAt - 1 && storeTime <= receivedAt + 1
      offset = agrees ? 0 : Math.round(storeTime - (sentAt + receivedAt) / 2)
    },
  }
}
