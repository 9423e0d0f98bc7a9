// Counts what one setting did: outcomes, ages, spending by window and by step of time, stretch and memory. Only counts; what
// is counted is simulate.ts's.

import { hourMs, isoOf, minuteMs, utcDayMs } from '../../calendar.ts'
import type { WholeDays } from '../report/plans.ts'
import { type CaseFigures, servedShare } from './what-if-result.ts'

type Sample = {
  readonly stretch: number
  /** Of the instance that holds most. */
  readonly memoryBytes: number
  readonly memoryEntries: number
  readonly sharedEntries: number
}

export type Tally = {
  request(): void
  /** An answer with weather. */
  onRead(outcome: 'hit' | 'stale' | 'miss', source: string, ageMs: number): void
  /** A request for weather that got none. */
  failed(): void
  /** A request to the provider of so much weight. */
  spent(cells: number, weight: number): void
  /** Taken each minute. */
  sample(sample: Sample): void
  /** Forgets what was counted. */
  reset(): void
  figures(): CaseFigures
}

const lengths = { minute: minuteMs, hour: hourMs, day: utcDayMs } as const
type SpanName = keyof typeof lengths
const spans = Object.keys(lengths) as SpanName[]

// Ages in seconds; nothing is served for longer than two days.
const maxAge = 3 * 86_400

type Step = {
  requests: number
  hits: number
  stale: number
  misses: number
  failed: number
  weight: number
  stretch: number
}

/** @param now of the clock that the traffic goes by @param stepMs the length of a step @param wholeDays by which plans are chosen */
export const createTally = (
  now: () => number,
  stepMs: number,
  encodedBytes: number,
  wholeDays?: WholeDays,
): Tally => {
  const ages = new Uint32Array(maxAge + 1)
  let from = 0
  let counts = zero()
  let steps: Step[] = []
  let days = new Map<number, { requests: number; weight: number }>()
  let windows: Record<SpanName, { window: number; used: number; most: number }>
  let stretch = { most: 1, samples: 0, above: 0 }
  let memory = { mostBytes: 0, mostEntries: 0 }
  let last: Sample | undefined

  const step = (): Step => {
    const at = Math.max(0, Math.floor((now() - from) / stepMs))
    for (let i = steps.length; i <= at; i++)
      steps.push({ requests: 0, hits: 0, stale: 0, misses: 0, failed: 0, weight: 0, stretch: 1 })
    return steps[at] as Step
  }
  const reset = (): void => {
    from = now()
    counts = zero()
    ages.fill(0)
    steps = []
    days = new Map()
    windows = {
      minute: { window: -1, used: 0, most: 0 },
      hour: { window: -1, used: 0, most: 0 },
      day: { window: -1, used: 0, most: 0 },
    }
    stretch = { most: 1, samples: 0, above: 0 }
    memory = { mostBytes: 0, mostEntries: 0 }
    last = undefined
  }
  reset()

  const ageAt = (share: number): number => {
    const served = counts.memory + counts.shared + counts.stale + counts.misses
    let below = 0
    for (let age = 0; age <= maxAge; age++) {
      below += ages[age] as number
      if (below > 0 && below >= share * served) return age
    }
    return 0
  }

  return {
    request: () => {
      counts.requests += 1
      step().requests += 1
    },
    onRead: (outcome, source, ageMs) => {
      const one = step()
      if (outcome === 'hit') {
        one.hits += 1
        if (source === 'memory') counts.memory += 1
        else counts.shared += 1
      } else if (outcome === 'stale') {
        one.stale += 1
        counts.stale += 1
      } else {
        one.misses += 1
        counts.misses += 1
      }
      const age = Math.min(maxAge, Math.max(0, Math.floor(ageMs / 1000)))
      ages[age] = (ages[age] as number) + 1
    },
    failed: () => {
      counts.failed += 1
      step().failed += 1
    },
    spent: (cells, weight) => {
      const at = now()
      counts.providerRequests += 1
      counts.cells += cells
      counts.weight += weight
      if (wholeDays && at >= wholeDays.from) counts.weightOfWholeDays += weight
      step().weight += weight
      const day = Math.floor(at / utcDayMs)
      const before = days.get(day) ?? { requests: 0, weight: 0 }
      days.set(day, { requests: before.requests + 1, weight: before.weight + weight })
      for (const span of spans) {
        const window = Math.floor(at / lengths[span])
        const running = windows[span]
        if (running.window !== window) Object.assign(running, { window, used: 0 })
        running.used += weight
        running.most = Math.max(running.most, running.used)
      }
    },
    sample: sample => {
      last = sample
      stretch.samples += 1
      if (sample.stretch > 1) stretch.above += 1
      stretch.most = Math.max(stretch.most, sample.stretch)
      step().stretch = Math.max(step().stretch, sample.stretch)
      memory.mostBytes = Math.max(memory.mostBytes, sample.memoryBytes)
      memory.mostEntries = Math.max(memory.mostEntries, sample.memoryEntries)
    },
    reset,
    figures: () => {
      const { requests, memory: inMemory, shared, stale, misses, failed } = counts
      const weather = inMemory + shared + stale + misses + failed
      return {
        requests,
        weather,
        none: requests - weather,
        hits: { memory: inMemory, shared },
        stale,
        misses,
        failed,
        hitShare: servedShare(inMemory + shared, { weather, failed }),
        provider: {
          requests: counts.providerRequests,
          cells: counts.cells,
          weight: rounded(counts.weight),
          days: [...days].map(([day, spent]) => ({
            day: isoOf(day * utcDayMs).slice(0, 10),
            requests: spent.requests,
            weight: rounded(spent.weight),
          })),
          most: {
            minute: rounded(windows.minute.most),
            hour: rounded(windows.hour.most),
            day: rounded(windows.day.most),
          },
          wholeDays: wholeDays
            ? {
                days: wholeDays.days,
                quietSeconds: wholeDays.quietMs / 1000,
                weight: rounded(counts.weightOfWholeDays),
              }
            : null,
        },
        stretch: {
          most: stretch.most,
          share: stretch.samples === 0 ? 0 : stretch.above / stretch.samples,
        },
        age: { p50: ageAt(0.5), p95: ageAt(0.95), max: ages.findLastIndex(count => count > 0) },
        memory: {
          mostBytes: memory.mostBytes,
          mostEntries: memory.mostEntries,
          sharedEntries: last?.sharedEntries ?? 0,
          sharedBytes: (last?.sharedEntries ?? 0) * encodedBytes,
        },
        stepSeconds: stepMs / 1000,
        steps: steps.map((one, i) => ({ at: (i * stepMs) / 1000, ...one, weight: rounded(one.weight) })),
      }
    },
  }
}

const zero = () => ({
  requests: 0,
  memory: 0,
  shared: 0,
  stale: 0,
  misses: 0,
  failed: 0,
  providerRequests: 0,
  cells: 0,
  weight: 0,
  weightOfWholeDays: 0,
})

// Sums of thirds and tenths.
const rounded = (weight: number): number => Math.round(weight * 1000) / 1000
