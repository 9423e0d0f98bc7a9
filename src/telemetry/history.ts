// The traffic of the last hour, a point every ten seconds: rates, which tier answered, and latencies. Takes the differences
// of the counters that metrics.ts has anyway, so that a request pays nothing for it.

import { type Clock, every } from '../common/clock.ts'
import type { Buckets, Reads, Totals } from './totals.ts'

export const stepSeconds = 10
const stepMs = stepSeconds * 1000
const maxPoints = 360
// How often it is checked whether a step is over.
const tickMs = 1_000

/** The values of one point; null where nothing was measured or there was nothing to measure. Durations in seconds. */
type Point = {
  readonly requestsPerSecond: number | null
  readonly errorsPerSecond: number | null
  /** Shares of all reads, including failed ones, so that the sum is below 1 while requests fail. */
  readonly hitShare: { readonly [Tier in Exclude<keyof Reads, 'failed'>]: number | null }
  readonly p50: number | null
  readonly p90: number | null
  readonly p99: number | null
}

export type History = {
  /** The last 360 points, oldest first; `endsAt` is the end of the last one, ms since the epoch. */
  points(): { readonly endsAt: number; readonly points: readonly Point[] }
  newest(): Point
  /** The share of reads of the last minute that a tier answered, failed ones among them; null without any. */
  recentHitShare(): number | null
  close(): void
}

type Step = Totals & { readonly seconds: number }

const emptyPoint: Point = {
  requestsPerSecond: null,
  errorsPerSecond: null,
  hitShare: { memory: null, shared: null, provider: null },
  p50: null,
  p90: null,
  p99: null,
}

/** @param onStep is called at the end of each step, for what else is sampled */
export const createHistory = (totals: () => Totals, clock: Clock, onStep: () => void = () => {}): History => {
  let steps: (Step | null)[] = []
  let last: { readonly at: number; readonly slot: number; readonly totals: Totals } | undefined

  const sample = (): void => {
    const now = clock.now()
    const slot = Math.floor(now / stepMs)
    if (slot === last?.slot) return
    const current = totals()
    if (last) {
      // A pause of the process leaves a gap, and a clock that went back one point without values.
      const missed = Math.min(Math.max(0, slot - last.slot - 1), maxPoints)
      steps.push(...Array.from({ length: missed }, () => null))
      const seconds = (now - last.at) / 1000
      steps.push(seconds > 0 ? { ...differenceOf(current, last.totals), seconds } : null)
      onStep()
    }
    steps = steps.slice(-maxPoints)
    last = { at: now, slot, totals: current }
  }
  sample()
  const endTimer = every(clock, tickMs, sample)

  return {
    points: () => ({
      endsAt: (last?.slot ?? Math.floor(clock.now() / stepMs)) * stepMs,
      points: [
        ...Array.from({ length: maxPoints - steps.length }, () => emptyPoint),
        ...steps.map(step => (step ? pointOf(step) : emptyPoint)),
      ],
    }),
    newest: () => {
      const step = steps.at(-1)
      return step ? pointOf(step) : emptyPoint
    },
    recentHitShare: () => {
      const recent = steps.slice(-6).flatMap(step => (step ? [step.reads] : []))
      const hits = recent.reduce((sum, { memory, shared }) => sum + memory + shared, 0)
      const reads = recent.reduce((sum, { provider, failed }) => sum + provider + failed, hits)
      return reads === 0 ? null : hits / reads
    },
    close: endTimer,
  }
}

const differenceOf = (now: Totals, before: Totals): Totals => ({
  requests: now.requests - before.requests,
  errors: now.errors - before.errors,
  durations: {
    bounds: now.durations.bounds,
    counts: now.durations.counts.map((count, i) => count - (before.durations.counts[i] ?? 0)),
  },
  reads: {
    memory: now.reads.memory - before.reads.memory,
    shared: now.reads.shared - before.reads.shared,
    provider: now.reads.provider - before.reads.provider,
    failed: now.reads.failed - before.reads.failed,
  },
})

const pointOf = ({ requests, errors, durations, reads, seconds }: Step): Point => {
  const all = reads.memory + reads.shared + reads.provider + reads.failed
  const share = (count: number) => (all === 0 ? null : count / all)
  return {
    requestsPerSecond: requests / seconds,
    errorsPerSecond: errors / seconds,
    hitShare: { memory: share(reads.memory), shared: share(reads.shared), provider: share(reads.provider) },
    p50: percentileOf(durations, 0.5),
    p90: percentileOf(durations, 0.9),
    p99: percentileOf(durations, 0.99),
  }
}

/**
 * The duration that a share of the counted ones does not exceed, interpolated within its bucket as Prometheus does; null
 * without any. What took longer than the last bound counts as the last bound.
 */
export const percentileOf = ({ bounds, counts }: Buckets, share: number): number | null => {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all <= 0) return null
  const rank = share * all
  let below = 0
  for (const [i, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const upper = bounds[i]
      const lower = bounds[i - 1] ?? 0
      return upper === undefined ? lower : lower + ((upper - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1) ?? null
}
