// A cache entry: the value and its metadata. Pure; knows neither weather nor tiers. freshness.ts decides how long an entry
// stays fresh.

import { crc32 } from 'node:zlib'

/** The metadata of an entry: all that its freshness depends on. */
export type EntryMetadata = {
  /** Ms since the epoch. */
  readonly fetchedAt: number
  /** From 0 to 1: the entry's part of the spread of freshness. */
  readonly jitter: number
  /** The number of the newest purge when its load began. */
  readonly generation: number
  /** When the newest run at its load became available, ms since the epoch; null when runs are not followed. */
  readonly run: number | null
  /** When the value ends, ms since the epoch: it is not served from then on. Undefined for a value without an end. */
  readonly reachesUntil?: number | undefined
}

export type Entry<Value> = EntryMetadata & {
  readonly value: Value
  /** The size of the value in memory. */
  readonly bytes: number
}

/** The jitter of an entry: the same in every instance, and different for each key and fetch. */
export const jitterOf = (key: string, fetchedAt: number): number => crc32(`${key}@${fetchedAt}`) / 2 ** 32
