// Intervals of 95 % confidence: of a share by Wilson, of the median of several runs by its order statistics, of ratios over
// steps by a bootstrap. The same figures give the same intervals on every machine.

import { createRandom } from '../traffic/generate/random.ts'

/** A figure with the interval that it lies in with 95 % confidence; null where there is none. */
export type Estimate = { readonly value: number; readonly low: number | null; readonly high: number | null }

const z = 1.96

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

/** What a step adds to a figure: to its numerator and to its denominator. */
export type Ratio = readonly [over: number, under: number]

type Interval = { readonly low: number; readonly high: number }

const samples = 1000
const leastSteps = 5

/**
 * Draws blocks of neighbouring steps again and again, because neighbours are alike. Paired, both sides have the same steps in
 * each draw, so that the shape of the day that they share does not count as noise. Undefined with too few steps.
 */
export const changeByBootstrap = (
  a: readonly Ratio[],
  b: readonly Ratio[],
  isPaired: boolean,
): { readonly a: Interval; readonly b: Interval; readonly change: Interval } | undefined => {
  if (a.length < leastSteps || b.length < leastSteps || (isPaired && a.length !== b.length)) return undefined
  const random = createRandom(1, 'comparison')
  const drawn: { a: number; b: number; change: number }[] = []
  for (let i = 0; i < samples; i += 1) {
    const steps = drawnSteps(a.length, random)
    const [one, other] = [ratioOf(a, steps), ratioOf(b, isPaired ? steps : drawnSteps(b.length, random))]
    if (one === null || other === null) continue
    drawn.push({ a: one, b: other, change: one === other ? 0 : other / one - 1 })
  }
  if (drawn.length < samples / 2) return undefined
  const interval = (name: 'a' | 'b' | 'change'): Interval => {
    const sorted = drawn.map(each => each[name]).toSorted((left, right) => left - right)
    const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN
    return { low: at(0.025), high: at(0.975) }
  }
  const change = interval('change')
  return Number.isFinite(change.high) ? { a: interval('a'), b: interval('b'), change } : undefined
}

const drawnSteps = (count: number, random: () => number): readonly number[] => {
  const block = Math.ceil(Math.cbrt(count))
  const steps: number[] = []
  while (steps.length < count) {
    const from = Math.floor(random() * count)
    for (let i = 0; i < block && steps.length < count; i += 1) steps.push((from + i) % count)
  }
  return steps
}

const ratioOf = (ratios: readonly Ratio[], steps: readonly number[]): number | null => {
  let [over, under] = [0, 0]
  for (const step of steps) {
    over += ratios[step]?.[0] ?? 0
    under += ratios[step]?.[1] ?? 0
  }
  return under === 0 ? null : over / under
}
