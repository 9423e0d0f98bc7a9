// What the cache keeps under a key, beside the value itself. Pure; knows neither weather nor tiers, and leaves how long
// an entry is good to the policies of freshness.

import { crc32 } from 'node:zlib'

/** What is noted beside a value: all that its freshness goes by. */
export type EntryMetadata = {
  /** Ms since the epoch. */
  readonly fetchedAt: number
  /** From 0 to 1, by chance: how much of the spread of freshness is this entry's. */
  readonly lot: number
  /** How many purges were known when its load began. */
  readonly generation: number
  /** When the newest run of the source known at its load became available, ms since the epoch; null if none is followed. */
  readonly run: number | null
}

export type Entry<Value> = EntryMetadata & {
  readonly value: Value
  /** What the value takes in memory. */
  readonly bytes: number
}

/** The lot of an entry: the same wherever it is drawn, another for another key or fetch. */
export const jitterOf = (key: string, fetchedAt: number): number => crc32(`${key}@${fetchedAt}`) / 2 ** 32
