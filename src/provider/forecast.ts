// Forecasts when each window of the provider's limits is used up at the present rate of spending. Recorded spending goes on across the
// ends of windows.

import { hourMs, minuteMs } from '../common/calendar.ts'
import { type SpanName, spanMs } from './spending-windows.ts'

/** A running window. Amounts are in the provider's weight, instants in ms since the epoch. */
export type SpendingNow = {
  readonly name: SpanName
  readonly limit: number
  readonly used: number
  readonly resetsAt: number
}

export type SpendingForecast = ReturnType<typeof createForecast>

// Loads come in waves: consumers arrive within minutes, and weather turns stale after an hour. Each rate covers at least one wave.
const rateOver: Readonly<Record<SpanName, number>> = {
  minute: minuteMs / 2,
  hour: 10 * minuteMs,
  day: hourMs,
}
// A rate is read from so many samples.
const samplesPerRate = 30

type Sample = { readonly at: number; readonly total: number }
type Series = { resetsAt: number; used: number; total: number; samples: Sample[] }

export const createForecast = () => {
  const known = new Map<SpanName, Series>()

  const rateOf = (window: SpendingNow, now: number): number => {
    const overMs = rateOver[window.name]
    const series = known.get(window.name)
    const from = series?.samples.findLast(({ at }) => at <= now - overMs)
    if (series && from) return (series.total - from.total) / (now - from.at)
    // Not recorded for long enough yet: the mean since the window began.
    const begunAt = window.resetsAt - spanMs[window.name]
    return now > begunAt ? window.used / (now - begunAt) : 0
  }

  return {
    /** Records the spending of now; called at short intervals. */
    record: (windows: readonly SpendingNow[], now: number): void => {
      for (const { name, used, resetsAt } of windows) {
        const before = known.get(name)
        // A clock that went back says nothing of the rate.
        if (!before || (before.samples.at(-1)?.at ?? now) > now) {
          known.set(name, { resetsAt, used, total: 0, samples: [{ at: now, total: 0 }] })
          continue
        }
        // Corrections lower a count, and are no spending.
        before.total += Math.max(0, before.resetsAt === resetsAt ? used - before.used : used)
        before.resetsAt = resetsAt
        before.used = used
        if (now - (before.samples.at(-1)?.at ?? 0) < rateOver[name] / samplesPerRate) continue
        const oldest = before.samples.findLastIndex(({ at }) => at <= now - rateOver[name])
        before.samples.splice(0, Math.max(0, oldest))
        before.samples.push({ at: now, total: before.total })
      }
    },
    /** When the window is used up, ms since the epoch; null if it is not before it resets, or nothing is being spent. */
    exhaustedAt: (window: SpendingNow, now: number): number | null => {
      const left = window.limit - window.used
      if (left <= 0) return now
      const rate = rateOf(window, now)
      if (rate <= 0) return null
      const at = Math.ceil(now + left / rate)
      return at < window.resetsAt ? at : null
    },
  }
}
