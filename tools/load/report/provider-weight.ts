// The weight that traffic spends at the provider: by UTC day, between instants, and at most in a minute, an hour and a day.

import { hourMs, isoOf, minuteMs, utcDayMs } from 'abohawa/common/calendar.ts'

export type ProviderDay = {
  readonly day: string
  readonly requests: number
  readonly weight: number
}

/** Since the start of the provider. */
export type ProviderCounts = { readonly calls: number; readonly weight: number; readonly refused: number }

export type ProviderWeight = ReturnType<typeof createProviderWeight>

export const createProviderWeight = () => {
  let total: ProviderCounts = { calls: 0, weight: 0, refused: 0 }
  const spent: { readonly at: number; readonly weight: number }[] = []
  const days = new Map<number, { requests: number; weight: number }>()
  const windows = {
    minute: { ms: minuteMs, index: -1, weight: 0, most: 0 },
    hour: { ms: hourMs, index: -1, weight: 0, most: 0 },
    day: { ms: utcDayMs, index: -1, weight: 0, most: 0 },
  }
  const weightBetween = (from: number, to: number): number =>
    rounded(spent.reduce((sum, { at, weight }) => (at >= from && at < to ? sum + weight : sum), 0))

  return {
    get total(): ProviderCounts {
      return { ...total, weight: rounded(total.weight) }
    },
    /** @param instant ms since the epoch, ascending */
    record: (instant: number, counts: ProviderCounts): void => {
      const [requests, weight] = [counts.calls - total.calls, counts.weight - total.weight]
      total = counts
      if (requests === 0 && weight === 0) return
      spent.push({ at: instant, weight })
      const index = Math.floor(instant / utcDayMs)
      const day = days.get(index) ?? { requests: 0, weight: 0 }
      days.set(index, { requests: day.requests + requests, weight: day.weight + weight })
      for (const window of Object.values(windows)) {
        const current = Math.floor(instant / window.ms)
        if (current !== window.index) Object.assign(window, { index: current, weight: 0 })
        window.weight += weight
        window.most = Math.max(window.most, window.weight)
      }
    },
    days: (): ProviderDay[] =>
      [...days].map(([index, { requests, weight }]) => ({
        day: isoOf(index * utcDayMs).slice(0, 10),
        requests,
        weight: rounded(weight),
      })),
    weightBetween,
    most: (): Readonly<Record<'minute' | 'hour' | 'day', number>> => ({
      minute: rounded(windows.minute.most),
      hour: rounded(windows.hour.most),
      day: rounded(windows.day.most),
    }),
  }
}

// Sums of thirds and tenths.
export const rounded = (weight: number): number => Math.round(weight * 1000) / 1000
