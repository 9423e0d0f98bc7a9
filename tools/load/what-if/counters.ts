// Counts what one setting did: outcomes, ages, provider weight, stretch and memory, in total and by step. Durations are in seconds,
// shares from 0 to 1.

import { createProviderWeight, rounded } from '../report/provider-weight.ts'

type Sample = {
  readonly stretch: number
  /** Of the instance with the most. */
  readonly memoryBytes: number
  readonly memoryEntries: number
  readonly sharedEntries: number
}

export type CaseFigures = ReturnType<ReturnType<typeof createCounters>['figures']>

/** A share of the responses with weather; 0 without any. */
export const servedShare = (
  count: number,
  { weather, failed }: { readonly weather: number; readonly failed: number },
): number => (weather === failed ? 0 : count / (weather - failed))

// In seconds; nothing is served for longer than two days.
const maxAge = 3 * 86_400

const newStep = () => ({ requests: 0, hits: 0, stale: 0, misses: 0, failed: 0, weight: 0, stretch: 1 })

const newCounts = () => ({
  requests: 0,
  /** Fresh weather, by the tier that held it. */
  hits: { memory: 0, shared: 0 },
  stale: 0,
  misses: 0,
  failed: 0,
  provider: { requests: 0, cells: 0 },
  weight: 0,
  spending: createProviderWeight(),
  steps: [] as ReturnType<typeof newStep>[],
  stretch: { most: 1, samples: 0, above: 0 },
  memory: { mostBytes: 0, mostEntries: 0, sharedEntries: 0 },
})

/** @param now by the clock of the traffic @param stepMs the length of a step @param encodedBytes the size of an entry in the shared tier */
export const createCounters = (now: () => number, stepMs: number, encodedBytes: number) => {
  const ages = new Uint32Array(maxAge + 1)
  let from = now()
  let counts = newCounts()

  const step = () => {
    const at = Math.max(0, Math.floor((now() - from) / stepMs))
    for (let i = counts.steps.length; i <= at; i++) counts.steps.push(newStep())
    return counts.steps[at] as ReturnType<typeof newStep>
  }
  const ageAt = (count: number): number => {
    let below = 0
    for (let age = 0; age <= maxAge; age++) {
      below += ages[age] as number
      if (below > 0 && below >= count) return age
    }
    return 0
  }

  return {
    /** @param places that it requests */
    request: (places = 1): void => {
      counts.requests += places
      step().requests += places
    },
    onRead: (outcome: 'hit' | 'stale' | 'miss', source: string, ageMs: number): void => {
      const one = step()
      if (outcome === 'hit') {
        one.hits += 1
        counts.hits[source === 'memory' ? 'memory' : 'shared'] += 1
      } else {
        const name = outcome === 'stale' ? 'stale' : 'misses'
        one[name] += 1
        counts[name] += 1
      }
      const age = Math.min(maxAge, Math.max(0, Math.floor(ageMs / 1000)))
      ages[age] = (ages[age] as number) + 1
    },
    failed: (places = 1): void => {
      counts.failed += places
      step().failed += places
    },
    /** A request to the provider. */
    spent: (cells: number, weight: number): void => {
      counts.provider.requests += 1
      counts.provider.cells += cells
      counts.weight += weight
      step().weight += weight
      counts.spending.record(now(), {
        calls: counts.provider.requests,
        weight: counts.weight,
        refused: 0,
      })
    },
    /** @param minutes since the last sample; earlier ones were without stretch */
    sample: ({ stretch, memoryBytes, memoryEntries, sharedEntries }: Sample, minutes: number): void => {
      counts.stretch.samples += minutes
      if (stretch > 1) counts.stretch.above += 1
      counts.stretch.most = Math.max(counts.stretch.most, stretch)
      step().stretch = Math.max(step().stretch, stretch)
      counts.memory = {
        mostBytes: Math.max(counts.memory.mostBytes, memoryBytes),
        mostEntries: Math.max(counts.memory.mostEntries, memoryEntries),
        sharedEntries,
      }
    },
    reset: (): void => {
      from = now()
      counts = newCounts()
      ages.fill(0)
    },
    figures: () => {
      const { requests, hits, stale, misses, failed, provider, spending, stretch, memory } = counts
      const fresh = hits.memory + hits.shared
      const served = fresh + stale + misses
      const weather = served + failed
      return {
        requests,
        /** Requests that reached the cache, including failed ones. */
        weather,
        /** Other endpoints, and requests refused before the cache is read. */
        none: requests - weather,
        hits,
        stale,
        /** Requests that waited for the provider. */
        misses,
        /** Requests that got an error: nothing was cached, and the budget had no room in time. */
        failed,
        /** Of the responses with weather, without failed requests. */
        hitShare: servedShare(fresh, { weather, failed }),
        provider: {
          ...provider,
          days: spending.days(),
          most: spending.most(),
          weight: spending.total.weight,
        },
        /** `share`: of the minutes in which freshness was stretched. */
        stretch: { most: stretch.most, share: stretch.samples === 0 ? 0 : stretch.above / stretch.samples },
        /** Of the weather that was served, however fresh. */
        age: {
          p50: ageAt(0.5 * served),
          p95: ageAt(0.95 * served),
          max: ages.findLastIndex(count => count > 0),
        },
        /** Memory tier: the maximum of one instance. Shared tier: at the end. */
        memory: { ...memory, sharedBytes: memory.sharedEntries * encodedBytes },
        stepSeconds: stepMs / 1000,
        /** `at`: seconds from the start of counting. */
        steps: counts.steps.map((one, i) => ({
          at: (i * stepMs) / 1000,
          ...one,
          weight: rounded(one.weight),
        })),
      }
    },
  }
}
