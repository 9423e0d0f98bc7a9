// The provider's rate-limit windows: minute, hour and UTC day, fixed on the clock, with limits in weight. The provider's
// clock differs a little from ours, so a request near a boundary counts in both windows. Pure.

import { hourMs, minuteMs, utcDayMs } from '../common/calendar.ts'
import type { ShareBounds } from '../stores/fair-share.ts'

/** Limits in the provider's weight; null where it has none. */
export type BudgetLimits = {
  readonly minute: number | null
  readonly hour: number | null
  readonly day: number | null
}
export type SpanName = keyof BudgetLimits

/** One window with its limit; amounts are whole thousandths of a weight. */
export type LimitedWindow = {
  readonly span: SpanName
  /** Such as `minute:29384012`: the same for everyone at the same instant. */
  readonly name: string
  readonly limit: number
  readonly beginsAt: number
  readonly endsAt: number
  readonly keepUntil: number
  /** The bounds of one consumer in it; the limit alone where absent. */
  readonly shares?: ShareBounds
  /**
   * Set aside beside `limit` for gateways that are without the store, all of them together; undefined where nobody else
   * shares the account, so that nothing needs to be.
   */
  readonly aside?: number | undefined
}

const lengths: Readonly<Record<SpanName, number>> = { minute: minuteMs, hour: hourMs, day: utcDayMs }
const spans = ['minute', 'hour', 'day'] as const

// Long enough for clocks that differ, and for a request that ends late to find the count it has to correct.
const keepForMs = hourMs

/** A spent amount in whole thousandths: rounded up, but not for the noise of a fraction. */
export const milliSpent = (weight: number): number => Math.ceil(Number((weight * 1000).toFixed(3)))

/** A limit in whole thousandths: rounded down, but not for the noise of a fraction. */
export const milliAllowed = (weight: number): number => Math.floor(Number((weight * 1000).toFixed(3)))

/** The limited windows that the instants from `from` to `to` lie in. */
export const windowsBetween = (limits: BudgetLimits, from: number, to: number): LimitedWindow[] =>
  spans.flatMap(span => {
    const [limit, lengthMs] = [limits[span], lengths[span]]
    if (limit === null) return []
    const first = Math.floor(from / lengthMs)
    return Array.from({ length: Math.floor(to / lengthMs) - first + 1 }, (_, i) => {
      const beginsAt = (first + i) * lengthMs
      const endsAt = beginsAt + lengthMs
      return {
        span,
        name: `${span}:${first + i}`,
        limit: milliAllowed(limit),
        beginsAt,
        endsAt,
        keepUntil: endsAt + keepForMs,
      }
    })
  })

/** The limited windows that an instant may lie in on the provider's clock, which differs by up to `marginMs`. */
export const windowsAround = (limits: BudgetLimits, instant: number, marginMs: number): LimitedWindow[] =>
  windowsBetween(limits, instant - marginMs, instant + marginMs)

/** When the UTC day of an instant ends. */
export const dayEndAfter = (instant: number): number => (Math.floor(instant / utcDayMs) + 1) * utcDayMs
