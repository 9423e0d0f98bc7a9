// Percentiles with intervals by a bootstrap over the steps of runs. Latencies come in bursts: a pause of a second makes hundreds
// of slow answers, which are one event and not hundreds.

import { histogramOf } from './histogram.ts'
import { bootstrap, type Drawn } from './intervals.ts'
import type { Step } from './result.ts'

/**
 * By percentile; undefined with too few steps.
 * @param percents ascending
 * @param isPaired both sides have the same steps in each draw
 */
export const percentilesByBootstrap = (
  a: readonly Step[],
  b: readonly Step[],
  percents: readonly number[],
  isPaired: boolean,
): ReadonlyMap<number, Drawn> | undefined => {
  const [one, other] = [a.map(measuredIn), b.map(measuredIn)]
  const values = [...new Set([...one, ...other].flatMap(({ values }) => values))].sort((x, y) => x - y)
  const places = new Map(values.map((value, place) => [value, place]))
  const placed = (steps: readonly Measured[]): Placed[] =>
    steps.map(step => ({
      places: step.values.map(value => places.get(value) as number),
      counts: step.counts,
    }))
  const sums = new Float64Array(values.length)
  const percentilesOf = (steps: readonly Placed[]): number[] | null => {
    sums.fill(0)
    let total = 0
    for (const { places: at, counts } of steps)
      for (let i = 0; i < at.length; i += 1) {
        const [place, count] = [at[i] as number, counts[i] as number]
        sums[place] = (sums[place] as number) + count
        total += count
      }
    if (total === 0) return null
    let [place, below] = [0, sums[0] as number]
    return percents.map(percent => {
      const rank = Math.max(1, Math.floor((percent / 100) * total + 0.5))
      while (below < rank && place + 1 < sums.length) below += sums[++place] as number
      return values[place] as number
    })
  }
  const found = bootstrap(placed(one), placed(other), isPaired, percentilesOf, 'percentiles')
  if (found === undefined) return undefined
  return new Map(
    percents.flatMap((percent, i) => {
      const { own, drawn } = found[i] ?? {}
      // A tail that few steps have hangs on when they came: by draws from them it can't be known how many there might have been.
      const isKnown = own && Math.min(stepsAbove(one, own[0]), stepsAbove(other, own[1])) >= leastTail
      return isKnown && drawn ? [[percent, drawn] as const] : []
    }),
  )
}

const leastTail = 5

const stepsAbove = (steps: readonly Measured[], percentile: number): number =>
  steps.filter(({ values }) => (values.at(-1) ?? Number.NEGATIVE_INFINITY) >= percentile).length

/** What was measured in a step: ascending values in ms, and how often each was. */
type Measured = { readonly values: readonly number[]; readonly counts: readonly number[] }
type Placed = { readonly places: readonly number[]; readonly counts: readonly number[] }

const measuredIn = ({ histogram: text }: Step): Measured => {
  const [values, counts]: [number[], number[]] = [[], []]
  if (text === undefined) return { values, counts }
  const histogram = histogramOf(text) as unknown as {
    readonly totalCount: number
    getCountAtIndex(index: number): number
    valueFromIndex(index: number): number
    highestEquivalentValue(value: number): number
  }
  for (let index = 0, left = histogram.totalCount; left > 0; index += 1) {
    const count = histogram.getCountAtIndex(index)
    if (count === 0) continue
    left -= count
    // One of 0 µs would make a change of it infinite.
    values.push(Math.max(1, histogram.highestEquivalentValue(histogram.valueFromIndex(index))) / 1000)
    counts.push(count)
  }
  return { values, counts }
}
