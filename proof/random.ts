// A reproducible random stream: it depends only on what it is made of, such as a seed and a name. sfc32; not for secrets.

import { hash } from 'node:crypto'

export type Random = {
  /** From 0 up to but not including 1. */
  fraction(): number
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  pick<Item>(items: readonly [Item, ...Item[]] | readonly Item[]): Item
  /** A random selection of items, each at most once, in random order. */
  some<Item>(items: readonly Item[], count: number): Item[]
}

/** The stream of a seed and of further values. */
export const createRandom = (...of: readonly (string | number)[]): Random => {
  const digest = hash('sha256', of.join(' '), 'buffer')
  let [a = 0, b = 0, c = 0, counter = 1] = [0, 4, 8, 12].map(at => digest.readUInt32LE(at))
  const next = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let i = 0; i < 12; i++) next()

  const fraction = (): number => next() / 2 ** 32
  const between = (least: number, most: number): number => least + Math.floor(fraction() * (most - least + 1))
  const pick = <Item>(items: readonly Item[]): Item => items[between(0, items.length - 1)] as Item
  return {
    fraction,
    between,
    chance: probability => fraction() < probability,
    pick,
    some: (items, count) => {
      const left = [...items]
      return Array.from(
        { length: Math.min(count, left.length) },
        () => left.splice(between(0, left.length - 1), 1)[0] as (typeof items)[number],
      )
    },
  }
}
