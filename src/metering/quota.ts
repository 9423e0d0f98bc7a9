// How much of its daily quota a client has left: one unit per request, on the local day in which the request arrived by
// the store's clock. An exhausted quota is an answer and not an error.

import { type Calendar, hourMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { Client } from './authentication.ts'
import type { Meter } from './meter.ts'
import type { Deal, MeteredDay } from './partition.ts'

export type Quota = {
  /** The instant that decides which day a request belongs to. */
  now(): number
  /** Takes one unit. @throws StoreError when nobody can tell whether there is one */
  consume(client: Client, arrivedAt: number): Promise<Deal>
  /** The next local midnight after an instant. */
  resetAfter(instant: number): number
}

/**
 * @param clock the store's
 * @param keepUsageForMs how long a day's count stands after the day ended
 */
export const createQuota = (
  meter: Pick<Meter, 'take'>,
  calendar: Calendar,
  clock: Clock,
  keepUsageForMs: number,
): Quota => {
  const dayAt = (instant: number): MeteredDay => {
    const endsAt = calendar.nextMidnight(instant)
    // Never less than an hour past midnight: requests of the old day may still be on their way then.
    return { day: calendar.dayOf(instant), endsAt, keepUntil: endsAt + Math.max(hourMs, keepUsageForMs) }
  }

  return {
    now: clock.now,
    resetAfter: calendar.nextMidnight,
    consume: ({ keyId, limit }, arrivedAt) => meter.take(keyId, limit, dayAt(arrivedAt)),
  }
}
