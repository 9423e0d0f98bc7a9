// The counters of metrics.ts that show how the traffic is, summed up: requests, errors, latencies, and which tier answered.
// Read at intervals, and kept by history.ts.

import { hasWeather, type ResponseName } from '../common/endpoints.ts'
import type { Counted, Time } from './counters.ts'

/** Sums since the start of the process. */
export type Totals = {
  readonly requests: number
  /** Answered with 5xx. */
  readonly errors: number
  /** Requests by the bucket of their duration. */
  readonly durations: Buckets
  /** Reads of the weather cache by what answered: the memory tier, the shared tier, the provider; or nothing did. */
  readonly reads: Reads
}

/** `counts` has one more than `bounds`: of what took longer than the last. Bounds are in seconds, rising. */
export type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[] }

export type Reads = {
  readonly memory: number
  readonly shared: number
  readonly provider: number
  readonly failed: number
}

/**
 * @param bounds of the buckets of durations, in seconds, rising
 * @param requests by endpoint and status
 * @param reads by outcome and source
 */
export const totalsOf = (
  bounds: readonly number[],
  requests: ReturnType<Time['all']>,
  reads: readonly Counted[],
): Totals => {
  const readsWhere = (matches: (source: string | number) => boolean): number =>
    sumOf(reads.map(({ second, count }) => (matches(second) ? count : 0)))
  return {
    requests: sumOf(requests.flatMap(({ counts }) => counts)),
    errors: sumOf(requests.flatMap(({ second, counts }) => (Number(second) >= 500 ? counts : []))),
    durations: {
      bounds,
      counts: [...bounds, 0].map((_, i) => sumOf(requests.map(({ counts }) => counts[i] ?? 0))),
    },
    reads: {
      memory: readsWhere(source => source === 'memory'),
      shared: readsWhere(source => source !== 'memory' && source !== 'provider'),
      provider: readsWhere(source => source === 'provider'),
      // A read that failed has no outcome of its own: it is a miss that nothing answered.
      failed: sumOf(
        requests.flatMap(({ first, second, counts }) =>
          hasWeather(first as ResponseName) && Number(second) >= 500 ? counts : [],
        ),
      ),
    },
  }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
