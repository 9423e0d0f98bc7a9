// Seeded random numbers: xoshiro128** (Blackman and Vigna), in integers of 32 bits, so that a seed gives the same numbers on
// every machine. Each use has a stream of its own, so that changing one share leaves everything else of a file as it was.

/** Numbers from 0 up to, not including, 1. */
export type Random = () => number

/** The stream of a seed with this name. */
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

// FNV-1a.
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

// Fills the state: four numbers that differ even where seeds are close.
const splitmix = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return mixed ^ (mixed >>> 15)
  }
}
