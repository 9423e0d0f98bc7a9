// Percentiles with intervals by a bootstrap over the steps of runs. Latencies come in bursts: a pause of a second makes hundreds
// of slow answers, which are one event and not hundreds. Whole blocks of steps are drawn, so that one event counts as one.

import { createRandom } from '../traffic/generate/random.ts'
import { histogramOf } from './histogram.ts'
import { type Drawn, drawnSteps, draws, intervalsOf, leastSteps } from './intervals.ts'
import type { Step } from './result.ts'

/** How often each value was measured, by its place among all values of both sides. */
type Counted = { readonly at: Uint32Array; readonly counts: Float64Array }

/**
 * By percentile; undefined where a step has no histogram, null with too few steps.
 * @param isPaired both sides have the same steps in each draw
 */
export const percentilesByBootstrap = (
  a: readonly Step[],
  b: readonly Step[],
  percents: readonly number[],
  isPaired: boolean,
): ReadonlyMap<number, Drawn> | null | undefined => {
  if ([...a, ...b].some(({ due, histogram }) => due > 0 && histogram === undefined)) return undefined
  if (a.length < leastSteps || b.length < leastSteps) return null
  const [one, other] = [a.map(measuredIn), b.map(measuredIn)]
  const values = [...new Set([...one, ...other].flatMap(step => step.map(([value]) => value)))].sort(
    (left, right) => left - right,
  )
  const places = new Map(values.map((value, place) => [value, place]))
  const countedIn = (step: Measured): Counted => ({
    at: Uint32Array.from(step, ([value]) => places.get(value) as number),
    counts: Float64Array.from(step, ([, count]) => count),
  })
  const [left, right] = [one.map(countedIn), other.map(countedIn)]
  const sums = new Float64Array(values.length)
  const valuesAt = (steps: readonly Counted[], chosen: readonly number[]): number[] | null => {
    sums.fill(0)
    let total = 0
    for (const step of chosen) {
      const { at, counts } = steps[step] as Counted
      for (let i = 0; i < at.length; i += 1) {
        const [place, count] = [at[i] as number, counts[i] as number]
        sums[place] = (sums[place] as number) + count
        total += count
      }
    }
    return total === 0 ? null : percentilesIn(sums, total, percents).map(place => values[place] as number)
  }
  const random = createRandom(1, 'percentiles')
  const drawn: (readonly [readonly number[], readonly number[]])[] = []
  for (let i = 0; i < draws; i += 1) {
    const steps = drawnSteps(left.length, random)
    const [ofA, ofB] = [
      valuesAt(left, steps),
      valuesAt(right, isPaired ? steps : drawnSteps(right.length, random)),
    ]
    if (ofA && ofB) drawn.push([ofA, ofB])
  }
  const [ownA, ownB] = [left, right].map(steps =>
    valuesAt(
      steps,
      steps.map((_, i) => i),
    ),
  )
  if (!ownA || !ownB) return null
  const found = percents.flatMap((percent, i) => {
    const of = (side: readonly number[]): number => side[i] as number
    const intervals = intervalsOf(
      drawn.map(([ofA, ofB]) => [of(ofA), of(ofB)]),
      [of(ownA), of(ownB)],
      Math.min(left.length, right.length),
    )
    // A tail that few steps have hangs on when they came: by draws from them it can't be known how many there might have been.
    if (stepsAbove(one, of(ownA)) < leastTail || stepsAbove(other, of(ownB)) < leastTail) return []
    return intervals ? [[percent, intervals] as const] : []
  })
  return new Map(found)
}

const leastTail = 5

const stepsAbove = (steps: readonly Measured[], percentile: number): number =>
  steps.filter(step => step.some(([value]) => value >= percentile)).length

type Measured = readonly (readonly [value: number, count: number])[]

const measuredIn = ({ histogram: text }: Step): Measured => {
  if (text === undefined) return []
  const histogram = histogramOf(text) as unknown as {
    readonly recordedValuesIterator: {
      reset(): void
      hasNext(): boolean
      next(): { readonly valueIteratedTo: number; readonly countAtValueIteratedTo: number }
    }
  }
  const values = histogram.recordedValuesIterator
  values.reset()
  const found: (readonly [number, number])[] = []
  while (values.hasNext()) {
    const { valueIteratedTo, countAtValueIteratedTo } = values.next()
    // In ms. One of 0 µs would make a change of it infinite.
    found.push([Math.max(1, valueIteratedTo) / 1000, countAtValueIteratedTo])
  }
  return found
}

/** The places of the values at ascending percentiles. */
const percentilesIn = (sums: Float64Array, total: number, percents: readonly number[]): number[] => {
  let [place, below] = [0, sums[0] as number]
  return percents.map(percent => {
    const rank = Math.max(1, Math.floor((percent / 100) * total + 0.5))
    while (below < rank && place + 1 < sums.length) {
      place += 1
      below += sums[place] as number
    }
    return place
  })
}
