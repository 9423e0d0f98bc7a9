// Counts what one setting did: outcomes, ages, spending by window and by step of time, stretch and memory. Only counts; what
// is counted is simulate.ts's.

import type { WholeDays } from '../report/plans.ts'
import { createSpending } from '../report/spending.ts'
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
  let spending = createSpending()
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
    spending = createSpending()
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
      counts.calls += 1
      counts.cells += cells
      counts.weight += weight
      step().weight += weight
      spending.record(now(), { calls: counts.calls, weight: counts.weight, refused: 0 })
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
          requests: counts.calls,
          cells: counts.cells,
          days: spending.days(),
          ...spending.spent(wholeDays),
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
  cells: 0,
  calls: 0,
  weight: 0,
})

// Sums of thirds and tenths.
const rounded = (weight: number): number => Math.round(weight * 1000) / 1000
