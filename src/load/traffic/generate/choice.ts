// Draws one of several by weight: popularity by Zipf's law, and shares of a mix. A draw is a binary search in the running
// totals of the weights.

import { power } from './arithmetic.ts'
import type { Random } from './random.ts'

/** Draws the position of a weight, each as often as its share of all; one weight at least must be above 0. */
export const createChoice = (weights: readonly number[], random: Random): (() => number) => {
  const totals = new Float64Array(weights.length)
  let total = 0
  for (const [i, weight] of weights.entries()) {
    total += weight
    totals[i] = total
  }
  return () => {
    const drawn = random() * total
    let low = 0
    let high = totals.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((totals[middle] as number) > drawn) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Weights by Zipf's law: the one of rank r, counted from 1, is r to the power of -alpha. */
export const zipfWeights = (count: number, alpha: number): number[] =>
  Array.from({ length: count }, (_, i) => power(i + 1, -alpha))
