// Counters and histograms of the hot path: plain numbers, formatted for Prometheus when metrics are read. The client
// library's own counters look up their labels on each increment, which costs more than the rest. metrics.ts declares them.

import type { Registry } from 'prom-client'

type Named = { readonly name: string; readonly help: string; readonly registry: Registry }

/** The names of one or two labels. */
type Labels = readonly [string, string?]

export type Count = {
  /** Adds one to the count of these values of the labels. */
  (first: string, second?: string): void
  /** Over all values of the second label. */
  sum(first: string): number
}

export const countBy = ({ name, help, registry }: Named, labels: Labels): Count => {
  const counts = new Map<LabelValue, Map<LabelValue, number>>()
  register(registry, { name, help, type: 'counter' }, () =>
    pairsOf(counts).map(([first, second, value]) => ({
      labels: labelled(labels, first, second),
      value,
    })),
  )
  const count = (first: string, second = ''): void => {
    const group = inner(counts, first)
    group.set(second, (group.get(second) ?? 0) + 1)
  }
  const sum = (first: string): number => {
    let total = 0
    for (const each of inner(counts, first).values()) total += each
    return total
  }
  return Object.assign(count, { sum })
}

/** Adds a duration to those of these values of the labels. */
export type Time = (first: string, second: string | number, seconds: number) => void

/** @param bounds upper bounds of the buckets in seconds, rising */
export const timeBy = ({ name, help, registry }: Named, labels: Labels, bounds: readonly number[]): Time => {
  type Times = { sum: number; readonly counts: number[] }
  const times = new Map<LabelValue, Map<LabelValue, Times>>()
  register(registry, { name, help, type: 'histogram' }, () =>
    pairsOf(times).flatMap(([first, second, { sum, counts }]) => {
      const own = labelled(labels, first, second)
      let below = 0
      const buckets = [...bounds, '+Inf'].map((le, i) => {
        below += counts[i] ?? 0
        return { metricName: `${name}_bucket`, labels: { le, ...own }, value: below }
      })
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: own, value: sum },
        { metricName: `${name}_count`, labels: own, value: below },
      ]
    }),
  )
  return (first, second, seconds) => {
    const group = inner(times, first)
    let found = group.get(second)
    if (!found) {
      found = { sum: 0, counts: new Array<number>(bounds.length + 1).fill(0) }
      group.set(second, found)
    }
    found.sum += seconds
    let bucket = 0
    while (seconds > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1
    found.counts[bucket] = (found.counts[bucket] ?? 0) + 1
  }
}

type LabelValue = string | number

const labelled = ([first, second]: Labels, one: LabelValue, other: LabelValue) => ({
  [first]: one,
  ...(second === undefined ? {} : { [second]: other }),
})

const inner = <Value>(
  outer: Map<LabelValue, Map<LabelValue, Value>>,
  name: LabelValue,
): Map<LabelValue, Value> => {
  let group = outer.get(name)
  if (!group) {
    group = new Map()
    outer.set(name, group)
  }
  return group
}

const pairsOf = <Value>(outer: Map<LabelValue, Map<LabelValue, Value>>): [LabelValue, LabelValue, Value][] =>
  [...outer].flatMap(([first, group]) =>
    [...group].map(([second, value]): [LabelValue, LabelValue, Value] => [first, second, value]),
  )

type Sample = {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

// The registry asks whatever it holds for its values; its types know the library's own kinds alone.
const register = (
  registry: Registry,
  what: { readonly name: string; readonly help: string; readonly type: 'counter' | 'histogram' },
  values: () => readonly Sample[],
): void => {
  const metric = {
    ...what,
    aggregator: 'sum',
    get: async () => ({ ...what, aggregator: 'sum', values: values() }),
  }
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
}
