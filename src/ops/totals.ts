// The counters of metrics.ts that show how the traffic is, summed up: requests, errors, latencies, and which tier answered.
// Read at intervals, and kept by history.ts.

import type { Registry } from 'prom-client'

/** Sums since the start of the process. */
export type Totals = {
  readonly requests: number
  /** Answered with 5xx. */
  readonly errors: number
  /** Requests by the bucket of their duration. */
  readonly durations: Buckets
  /** Reads of the weather cache by what answered: the memory tier, the shared tier, the provider. */
  readonly reads: Reads
}

/** `counts` has one more than `bounds`: of what took longer than the last. Bounds are in seconds, rising. */
export type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[] }

export type Reads = { readonly memory: number; readonly shared: number; readonly provider: number }

type Sample = {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number | undefined>>
  readonly value: number
}

const requestDuration = 'http_server_request_duration_seconds'
const cacheReads = 'abohawa_cache_reads_total'

export const totalsOf = async (registry: Registry): Promise<Totals> => {
  const samplesOf = async (name: string): Promise<readonly Sample[]> => {
    const metric = registry.getSingleMetric(name) as { get(): Promise<{ values: Sample[] }> } | undefined
    return (await metric?.get())?.values ?? []
  }
  const [durations, reads] = await Promise.all([samplesOf(requestDuration), samplesOf(cacheReads)])
  const counts = durations.filter(({ metricName }) => metricName?.endsWith('_count'))
  const readsWhere = (matches: (source: unknown) => boolean): number =>
    sumOf(reads.filter(({ labels: { source } }) => matches(source)))
  return {
    requests: sumOf(counts),
    errors: sumOf(counts.filter(({ labels: { status } }) => Number(status) >= 500)),
    durations: bucketsIn(durations),
    reads: {
      memory: readsWhere(source => source === 'memory'),
      shared: readsWhere(source => source !== 'memory' && source !== 'provider'),
      provider: readsWhere(source => source === 'provider'),
    },
  }
}

const sumOf = (samples: readonly Sample[]): number => samples.reduce((sum, { value }) => sum + value, 0)

// Prometheus has the counts of all shorter durations in a bucket too.
const bucketsIn = (samples: readonly Sample[]): Buckets => {
  const upTo = new Map<number, number>()
  for (const { metricName, labels, value } of samples) {
    if (!metricName?.endsWith('_bucket')) continue
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
    upTo.set(bound, (upTo.get(bound) ?? 0) + value)
  }
  const bounds = [...upTo.keys()].sort((one, other) => one - other)
  const counts = bounds.map(
    (bound, i) => (upTo.get(bound) ?? 0) - (upTo.get(bounds[i - 1] ?? Number.NaN) ?? 0),
  )
  return { bounds: bounds.filter(Number.isFinite), counts }
}
