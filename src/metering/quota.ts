// How much of its daily quota a client has left: one unit per request, counted in the store in one atomic step, on the
// local day in which the request arrived. An exhausted quota is an answer and not an error.

import { type Calendar, hourMs } from '../calendar.ts'
import type { UsageStore } from '../stores/store.ts'
import type { Client } from './authentication.ts'

/** What the rate-limit headers say. `resetsAt` is the next local midnight, ms since the epoch. */
export type Allowance = {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly resetsAt: number
}

export type Quota = {
  /** Takes one unit. @throws StoreError when the store can't count */
  consume(client: Client, arrivedAt: number): Promise<Allowance>
  /** The next local midnight after an instant. */
  resetAfter(instant: number): number
}

/** @param keepUsageForMs how long a day's count stands after the day ended */
export const createQuota = (
  usage: Pick<UsageStore, 'take'>,
  calendar: Calendar,
  keepUsageForMs: number,
): Quota => ({
  resetAfter: calendar.nextMidnight,
  consume: async ({ keyId, limit }, arrivedAt) => {
    const resetsAt = calendar.nextMidnight(arrivedAt)
    const { taken, used } = await usage.take({
      keyId,
      day: calendar.dayOf(arrivedAt),
      units: 1,
      limit,
      // Never less than an hour past midnight: requests of the old day may still be on their way then.
      keepUntil: resetsAt + Math.max(hourMs, keepUsageForMs),
    })
    return { allowed: taken === 1, limit, remaining: Math.max(0, limit - used), resetsAt }
  },
})
