// The provider's rate-limit windows: minute, hour and UTC day, fixed on the clock, with limits in weight. Also one consumer's share of a
// window, the part set aside for gateways without the store, and the stretch with which the day suffices. The provider's clock differs a
// little from ours, so a request near a boundary counts in both windows.

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
  /** The bounds of one consumer in it; only the limit where absent. */
  readonly shares?: ShareBounds
  /**
   * Set aside, besides `limit`, for all gateways that are without the store; undefined where nobody else shares the account.
   */
  readonly outageReserve?: number | undefined
}

export const spanMs = { minute: minuteMs, hour: hourMs, day: utcDayMs } as const
export const spans = ['minute', 'hour', 'day'] as const

// Long enough for clocks that differ, and for a request that ends late to find the count it has to correct.
const keepForMs = hourMs

/** A spent amount in whole thousandths: rounded up, but not for the noise of a fraction. */
export const milliSpent = (weight: number): number => Math.ceil(Number((weight * 1000).toFixed(3)))

/** A limit in whole thousandths: rounded down, but not for the noise of a fraction. */
const milliAllowed = (weight: number): number => Math.floor(Number((weight * 1000).toFixed(3)))

/** The limited windows that the instants from `from` to `to` lie in. */
export const windowsBetween = (limits: BudgetLimits, from: number, to: number): LimitedWindow[] =>
  spans.flatMap(span => {
    const [limit, lengthMs] = [limits[span], spanMs[span]]
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

export type ShareSettings = {
  /** The share of every limit, 0 to 1, that only cold cells may use. */
  readonly reserve: number
  /** The share of every limit, 0 to 1, that one consumer may use while others load too; 1 bounds nobody. */
  readonly keyShare: number
  /**
   * The share of every limit, 0 to 1, that is set aside for gateways without the store; null where no other process shares
   * the store.
   */
  readonly outageShare: number | null
}

// The part of the reserve that a consumer leaves for later ones while it is the only one.
const keptBackShare = 0.5

// About a request to the provider.
const inFlightMs = 250

const portionOf = ({ limit }: LimitedWindow, part: number): number => milliAllowed((limit / 1000) * part)

/** A window less what is set aside of it. Of a small limit nothing is: less than a cell is of use to nobody. */
export const withOutageReserve = (
  window: LimitedWindow,
  { outageShare }: ShareSettings,
  unit: number,
): LimitedWindow => {
  if (outageShare === null) return window
  const wanted = portionOf(window, outageShare)
  const outageReserve = wanted < unit ? 0 : wanted
  return { ...window, limit: window.limit - outageReserve, outageReserve }
}

/** A window as it bounds a purpose: its limit, and the bounds of one consumer. @param unit a cell, in thousandths of a weight */
export const boundedFor = (
  purpose: 'cold' | 'refresh',
  whole: LimitedWindow,
  settings: ShareSettings,
  unit: number,
  now: number,
): LimitedWindow => {
  const { reserve, keyShare } = settings
  const window = withOutageReserve(whole, settings, unit)
  const unreserved = portionOf(window, 1 - reserve)
  const isCold = purpose === 'cold'
  const kept = isCold ? portionOf(window, reserve * keptBackShare) : 0
  const limit = isCold ? window.limit : unreserved
  const bounded = { ...window, limit }
  const elapsed = (now - window.beginsAt) / (window.endsAt - window.beginsAt)
  if (!isCold && window.outageReserve)
    bounded.outageReserve = Math.floor(window.outageReserve * (1 - reserve))
  if (keyShare >= 1) return bounded
  return {
    ...bounded,
    shares: {
      // With a small limit, a part of less than one cell is useless.
      soloLimit: limit - (kept < unit ? 0 : kept),
      share: portionOf(window, keyShare),
      pacedLimit: Math.floor(unreserved * Math.min(1, Math.max(0, elapsed))),
    },
  }
}

/**
 * When a consumer without room in these windows may go on: when each is over, or has gone on for long enough for what is
 * spent. Null without windows. @param used and `unit`, in thousandths of a weight
 */
export const throttledUntil = (
  windows: readonly LimitedWindow[],
  { reserve }: ShareSettings,
  used: (window: LimitedWindow) => number,
  unit: number,
  now: number,
): number | null => {
  const ends = windows.map(window => {
    const { beginsAt, endsAt } = window
    // Only requests in flight take room of a later window, and they give it back when they end.
    if (beginsAt > now) return now + inFlightMs
    const pacedAt = beginsAt + ((endsAt - beginsAt) * (used(window) + unit)) / portionOf(window, 1 - reserve)
    return Math.min(endsAt, Math.max(now + 1, Math.ceil(pacedAt)))
  })
  return ends.length === 0 ? null : Math.max(...ends)
}

/**
 * The stretch per unit of daily demand, given what is left of a day: how many times longer than usual weather stays fresh, so that
 * the budget lasts to the end of the day. Rises smoothly as the day is spent faster than it passes; steady demand keeps it over
 * midnight. Infinity when nothing is left. Amounts are in the provider's weight.
 */
export const priceOf = (day: {
  readonly limit: number
  /** The fraction of the limit, 0 to 1, that is reserved for cells with nothing cached. */
  readonly reserve: number
  readonly spent: number
  /** Until the end of the day. */
  readonly msLeft: number
}): number => {
  const left = day.limit * (1 - day.reserve) - day.spent
  return left <= 0 ? Number.POSITIVE_INFINITY : day.msLeft / utcDayMs / left
}

/** At least 1, the usual freshness. @param demandPerDay the cost of a whole day of usual freshness */
export const stretchAt = (price: number, demandPerDay: number): number =>
  demandPerDay === 0 ? 1 : Math.max(1, demandPerDay * price)
