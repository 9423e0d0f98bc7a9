// Intervals of 99 % confidence: of a share by Wilson, of the median of several runs by its order statistics, of what follows from
// steps by a bootstrap. The same figures give the same intervals on every machine. A comparison has a dozen figures: of
// intervals of 95 % it would call one of them real in every second pair of equal runs.

import { createRandom } from '../traffic/generate/random.ts'

/** A figure with the interval that it lies in with 99 % confidence; null where there is none. */
export type Estimate = { readonly value: number; readonly low: number | null; readonly high: number | null }

/** Of a normal distribution, 99 % lies within so many standard deviations. */
const z = 2.576

/** A share of a count, by Wilson's score; null of nothing. */
export const shareEstimate = (count: number, of: number): Estimate | null => {
  if (of === 0) return null
  const share = count / of
  const middle = (share + z ** 2 / (2 * of)) / (1 + z ** 2 / of)
  const half = (z / (1 + z ** 2 / of)) * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2))
  return { value: share, low: count === 0 ? 0 : middle - half, high: count === of ? 1 : middle + half }
}

/** The median of several runs; of fewer than nine its interval is from the least to the largest. */
export const medianEstimate = (values: readonly number[]): Estimate => {
  const sorted = values.toSorted((a, b) => a - b)
  const n = sorted.length
  const at = (rank: number): number => sorted[Math.max(0, Math.min(n - 1, rank))] ?? Number.NaN
  const off = n < 9 ? n : (z / 2) * Math.sqrt(n)
  return {
    value: (at(Math.floor((n - 1) / 2)) + at(Math.ceil((n - 1) / 2))) / 2,
    low: at(Math.floor(n / 2 - off)),
    high: at(Math.ceil(n / 2 + off) - 1),
  }
}

export type Interval = { readonly low: number; readonly high: number }

export type Drawn = {
  readonly a: Interval
  readonly b: Interval
  /** Null where A may be 0. */
  readonly change: Interval | null
}

const draws = 1000
/** With fewer steps nobody can tell a burst of slow answers from a slow side. */
export const leastSteps = 10

/**
 * Draws blocks of neighbouring steps again and again, because neighbours are alike, and what comes in bursts counts as one event
 * so. Paired, both sides have the same steps in each draw, so that the shape of the day that they share does not count as noise.
 * A figure is undefined with too few steps, and where too few draws have it.
 * @param figuresOf the figures of steps, NaN for one that these steps don't have
 */
export const bootstrap = <Step>(
  a: readonly Step[],
  b: readonly Step[],
  isPaired: boolean,
  figuresOf: (steps: readonly Step[]) => readonly number[],
): (Drawn | undefined)[] => {
  if (a.length < leastSteps || b.length < leastSteps || (isPaired && a.length !== b.length)) return []
  const random = createRandom(1, 'comparison')
  const [ownA, ownB] = [figuresOf(a), figuresOf(b)]
  const pairs = Array.from({ length: draws }, () => {
    const places = drawnPlaces(a.length, random)
    const others = isPaired ? places : drawnPlaces(b.length, random)
    return [figuresOf(chosen(a, places)), figuresOf(chosen(b, others))] as const
  })
  return ownA.map((value, figure) => {
    const drawn = pairs.map(([one, other]): Pair => [one[figure] as number, other[figure] as number])
    return intervalsOf(drawn.filter(isKnown), [value, ownB[figure] as number], Math.min(a.length, b.length))
  })
}

const chosen = <Step>(steps: readonly Step[], places: readonly number[]): Step[] =>
  places.map(place => steps[place] as Step)

type Pair = readonly [a: number, b: number]
const isKnown = ([a, b]: Pair): boolean => !Number.isNaN(a) && !Number.isNaN(b)

/**
 * Of pairs of figures that were drawn.
 * @param own of all steps as they are. An interval holds its own figure: what is drawn from bursts may miss it
 * @param steps of a side; of few blocks the draws differ by less than runs do, by about as much as Student has it
 */
const intervalsOf = (drawn: readonly Pair[], own: Pair, steps: number): Drawn | undefined => {
  if (drawn.length < draws / 2 || !isKnown(own)) return undefined
  const blocks = steps / blockOf(steps)
  const wider = Math.sqrt(blocks / (blocks - 1)) * (1 + (z ** 2 + 1) / (4 * (blocks - 1)))
  const interval = (of: (pair: Pair) => number): Interval => {
    const sorted = drawn.map(of).toSorted((left, right) => left - right)
    const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN
    const value = of(own)
    return {
      low: beyond(value, Math.min(value, at(0.005)), wider),
      high: beyond(value, Math.max(value, at(0.995)), wider),
    }
  }
  const ratio = interval(([a, b]) => (a === b ? 1 : b / a))
  const isBounded = Number.isFinite(ratio.low) && Number.isFinite(ratio.high)
  return {
    a: interval(([a]) => a),
    b: interval(([, b]) => b),
    change: isBounded ? { low: ratio.low - 1, high: ratio.high - 1 } : null,
  }
}

/** From a value so many times as far as an end of its interval, by factors: latencies are tens of times as long, or as short. */
const beyond = (value: number, end: number, times: number): number =>
  value > 0 && end > 0 ? value * (end / value) ** times : end

const blockOf = (steps: number): number => Math.ceil(Math.cbrt(steps))

/** Places of steps in blocks of neighbours. */
const drawnPlaces = (count: number, random: () => number): readonly number[] => {
  const block = blockOf(count)
  const steps: number[] = []
  while (steps.length < count) {
    const from = Math.floor(random() * count)
    for (let i = 0; i < block && steps.length < count; i += 1) steps.push((from + i) % count)
  }
  return steps
}
