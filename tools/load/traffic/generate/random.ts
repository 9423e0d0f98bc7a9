// Seeded random numbers by xoshiro128** (Blackman and Vigna) and choices by weight, equal on every machine. Each use has its own
// stream, so that changing one share leaves everything else as it was.

/** Numbers from 0 up to, not including, 1. */
export type Random = () => number

export const createRandom = (seed: number, name: string): Random => {
  const next = splitmix(hashOf(`${seed}/${name}`))
  let [a, b, c, d] = [next(), next(), next(), next()]
  return () => {
    const result = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotated(d, 11)
    return result / 2 ** 32
  }
}

const rotated = (value: number, by: number): number => (value << by) | (value >>> (32 - by))

/** FNV-1a. */
export const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

// Fills the state with four numbers that differ even for close seeds.
const splitmix = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return mixed ^ (mixed >>> 15)
  }
}

/** Draws an index in proportion to its weight; at least one weight must be above 0. */
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

/** Weights by Zipf's law: rank r, from 1, has r to the power of -alpha. */
export const zipfWeights = (count: number, alpha: number): number[] =>
  Array.from({ length: count }, (_, i) => power(i + 1, -alpha))

// Math.log and Math.pow differ between processors and runtimes; addition, multiplication and division do not.
const ln2 = Math.LN2

export const naturalLog = (value: number): number => {
  let mantissa = value
  let exponent = 0
  for (; mantissa >= 1.5; mantissa /= 2) exponent += 1
  for (; mantissa < 0.75; mantissa *= 2) exponent -= 1
  // ln m = 2 artanh((m - 1) / (m + 1)), with an argument of 0.2 at most.
  const ratio = (mantissa - 1) / (mantissa + 1)
  const square = ratio * ratio
  let sum = 0
  for (let odd = 23; odd >= 1; odd -= 2) sum = sum * square + 1 / odd
  return exponent * ln2 + 2 * ratio * sum
}

const exponential = (value: number): number => {
  const doublings = Math.round(value / ln2)
  const rest = value - doublings * ln2
  let sum = 1
  for (let term = 18; term >= 1; term--) sum = 1 + (sum * rest) / term
  return sum * powerOfTwo(doublings)
}

const powerOfTwo = (exponent: number): number => {
  let result = 1
  for (let i = 0; i < Math.abs(exponent); i++) result *= exponent > 0 ? 2 : 0.5
  return result
}

const power = (base: number, exponent: number): number => exponential(exponent * naturalLog(base))
