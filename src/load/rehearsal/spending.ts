// The spending of a rehearsal at its provider: the weight by step, by UTC day and by window of each limit, from the provider's own
// counts at instants of the traffic. The caller gives the limits.

import { hourMs, isoOf, minuteMs, utcDayMs } from '../../calendar.ts'

export type ProviderDay = {
  /** Such as `2026-11-21`, UTC. */
  readonly day: string
  readonly requests: number
  readonly weight: number
}

/** As the provider counts since its start. */
export type ProviderCounts = { readonly calls: number; readonly weight: number; readonly refused: number }

const spans = { minute: minuteMs, hour: hourMs, day: utcDayMs } as const
type Span = keyof typeof spans

export type Spending = {
  /** Counts that were reached at an instant, in ms since the epoch; instants come in order. */
  record(instant: number, counts: ProviderCounts): void
  readonly total: ProviderCounts
  days(): ProviderDay[]
  /** The most weight in one window: minutes, hours and days as the provider has them. */
  most(span: Span): number
  /** From one instant, inclusive, to another one. */
  weightBetween(from: number, to: number): number
}

export const createSpending = (): Spending => {
  let total: ProviderCounts = { calls: 0, weight: 0, refused: 0 }
  const spent: { readonly at: number; readonly weight: number }[] = []
  const days = new Map<number, { requests: number; weight: number }>()
  const windows = Object.values(spans).map(() => ({ index: -1, weight: 0, most: 0 }))

  return {
    get total() {
      return total
    },
    record: (instant, counts) => {
      const [requests, weight] = [counts.calls - total.calls, counts.weight - total.weight]
      total = counts
      if (requests === 0 && weight === 0) return
      spent.push({ at: instant, weight })
      const index = Math.floor(instant / utcDayMs)
      const day = days.get(index) ?? { requests: 0, weight: 0 }
      days.set(index, { requests: day.requests + requests, weight: day.weight + weight })
      for (const [i, ms] of Object.values(spans).entries()) {
        const window = windows[i]
        if (!window) continue
        const current = Math.floor(instant / ms)
        if (current !== window.index) Object.assign(window, { index: current, weight: 0 })
        window.weight += weight
        window.most = Math.max(window.most, window.weight)
      }
    },
    days: () =>
      [...days].map(([index, day]) => ({
        day: isoOf(index * utcDayMs).slice(0, 10),
        ...day,
      })),
    most: span => windows[Object.keys(spans).indexOf(span)]?.most ?? 0,
    weightBetween: (from, to) =>
      spent.reduce((sum, { at, weight }) => (at >= from && at < to ? sum + weight : sum), 0),
  }
}
