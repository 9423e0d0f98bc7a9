// The traffic of the last hour, a point every ten seconds: rates, which tier answered, and latencies. The points are differences of the
// metrics' counters, so that a request pays nothing for them.

import { type Clock, every } from '../common/clock.ts'
import type { Counted, Time } from './counters.ts'

export const stepSeconds = 10
const stepMs = stepSeconds * 1000
const maxPoints = 360
const recentSteps = 30
// How often it is checked whether a step is over.
const tickMs = 1_000

/** Sums since the start of the process. Reads of the weather cache are counted by what answered: a tier, the provider, or nothing. */
export type Totals = {
  readonly requests: number
  /** Answered with 5xx. */
  readonly errors: number
  /** Requests by the bucket of their duration. */
  readonly durations: Buckets
  readonly memory: number
  readonly shared: number
  readonly provider: number
  readonly failed: number
}

/** `counts` has one more than `bounds`: of what took longer than the last. Bounds are in seconds, rising. */
type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[] }

/** The values of one point; null where nothing was measured or there was nothing to measure. Durations in seconds. */
type Point = {
  readonly requestsPerSecond: number | null
  readonly errorsPerSecond: number | null
  /** Shares of all reads, including failed ones, so that the sum is below 1 while requests fail. */
  readonly hitShare: { readonly [Tier in 'memory' | 'shared' | 'provider']: number | null }
  readonly p50: number | null
  readonly p90: number | null
  readonly p99: number | null
}

export type History = ReturnType<typeof createHistory>

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
export const createHistory = (totals: () => Totals, clock: Clock, onStep: () => void = () => {}) => {
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
    /** The last 360 points, oldest first; `endsAt` is the end of the last one, ms since the epoch. */
    points: (): { readonly endsAt: number; readonly points: readonly Point[] } => ({
      endsAt: (last?.slot ?? Math.floor(clock.now() / stepMs)) * stepMs,
      points: [
        ...Array.from({ length: maxPoints - steps.length }, () => emptyPoint),
        ...steps.map(step => (step ? pointOf(step) : emptyPoint)),
      ],
    }),
    newest: (): Point => {
      const step = steps.at(-1)
      return step ? pointOf(step) : emptyPoint
    },
    /** The share of reads of the last minute that a tier answered, failed ones among them; null without any. */
    recentHitShare: (): number | null => {
      const recent = steps.slice(-6).filter(step => step !== null)
      const hits = sumOf(recent.map(({ memory, shared }) => memory + shared))
      const reads = hits + sumOf(recent.map(({ provider, failed }) => provider + failed))
      return reads === 0 ? null : hits / reads
    },
    /** Answers with 5xx in the steps of the last five minutes. */
    recentErrors: (): number => sumOf(steps.slice(-recentSteps).map(step => step?.errors ?? 0)),
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
  memory: now.memory - before.memory,
  shared: now.shared - before.shared,
  provider: now.provider - before.provider,
  failed: now.failed - before.failed,
})

const pointOf = ({ requests, errors, durations, seconds, ...reads }: Step): Point => {
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
  const all = sumOf(counts)
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

/**
 * @param bounds of the buckets of durations, in seconds, rising
 * @param requests by endpoint and status
 * @param reads by outcome and source
 * @param failed reads without an outcome: misses that nothing answered
 */
export const totalsOf = (
  bounds: readonly number[],
  requests: ReturnType<Time['all']>,
  reads: readonly Counted[],
  failed: number,
): Totals => {
  const readsWhere = (matches: (source: string | number) => boolean): number =>
    sumOf(reads.map(({ second, count }) => (matches(second) ? count : 0)))
  const failures = requests.filter(({ second }) => Number(second) >= 500)
  const countsOf = (of: typeof requests): number => sumOf(of.flatMap(({ counts }) => counts))
  return {
    requests: countsOf(requests),
    errors: countsOf(failures),
    durations: {
      bounds,
      counts: [...bounds, 0].map((_, i) => sumOf(requests.map(({ counts }) => counts[i] ?? 0))),
    },
    memory: readsWhere(source => source === 'memory'),
    shared: readsWhere(source => source !== 'memory' && source !== 'provider'),
    provider: readsWhere(source => source === 'provider'),
    failed,
  }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
