// Percentiles with intervals by a bootstrap over the steps of runs. Latencies come in bursts: a pause of a second makes hundreds
// of slow answers, which are one event and not hundreds. Whole blocks of steps are drawn, so that one event counts as one.

import { createRandom } from '../traffic/generate/random.ts'
import { type Block, percentilesOver } from './drawn-percentiles.ts'
import { histogramOf } from './histogram.ts'
import { type Drawn, drawnSteps, draws, intervalsOf, leastSteps } from './intervals.ts'
import type { Step } from './result.ts'

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
  const percentilesOf = (steps: readonly Measured[]) => {
    const placed = steps.map(step =>
      step.map(([value, count]) => [places.get(value) as number, count] as const),
    )
    const placesAt = percentilesOver(placed, values.length)
    return (chosen: readonly number[]): number[] | undefined =>
      placesAt(blocksOf(chosen), percents)?.map(place => values[place] as number)
  }
  const [left, right] = [percentilesOf(one), percentilesOf(other)]
  const random = createRandom(1, 'percentiles')
  const drawn: (readonly [readonly number[], readonly number[]])[] = []
  for (let i = 0; i < draws; i += 1) {
    const steps = drawnSteps(one.length, random)
    const [ofA, ofB] = [left(steps), right(isPaired ? steps : drawnSteps(other.length, random))]
    if (ofA && ofB) drawn.push([ofA, ofB])
  }
  const [ownA, ownB] = [left([...one.keys()]), right([...other.keys()])]
  if (!ownA || !ownB) return null
  const found = percents.flatMap((percent, i) => {
    const of = (side: readonly number[]): number => side[i] as number
    const intervals = intervalsOf(
      drawn.map(([ofA, ofB]) => [of(ofA), of(ofB)]),
      [of(ownA), of(ownB)],
      Math.min(one.length, other.length),
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
    readonly totalCount: number
    getCountAtIndex(index: number): number
    valueFromIndex(index: number): number
    highestEquivalentValue(value: number): number
  }
  const found: (readonly [number, number])[] = []
  for (let index = 0, left = histogram.totalCount; left > 0; index += 1) {
    const count = histogram.getCountAtIndex(index)
    if (count === 0) continue
    left -= count
    const value = histogram.highestEquivalentValue(histogram.valueFromIndex(index))
    // In ms. One of 0 µs would make a change of it infinite.
    found.push([Math.max(1, value) / 1000, count])
  }
  return found
}

const blocksOf = (steps: readonly number[]): Block[] => {
  const blocks: Block[] = []
  for (let first = 0, next = 1; first < steps.length; first = next++) {
    const from = steps[first] as number
    while (steps[next] === from + next - first) next += 1
    blocks.push([from, from + next - first])
  }
  return blocks
}
