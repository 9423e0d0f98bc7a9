// Timelines by grid cell: the two cache tiers over the provider, put together once for the gateway and for tools. Says
// what an entry weighs, how it lies in the shared tier and which key it has there; when to load is the cache's to know.

import { hash } from 'node:crypto'
import { type FreshnessPolicy, lotOf } from './cache/entry.ts'
import { createMemoryTier } from './cache/memory-tier.ts'
import { type CacheObserver, createReadThrough, type ReadThrough } from './cache/read-through.ts'
import { type ByteStore, createSharedTier, type SharedTierObserver } from './cache/shared-tier.ts'
import type { Clock } from './clock.ts'
import type { Provider } from './provider/client.ts'
import type { Cell } from './weather/cell.ts'
import { bytesOf, type Timeline } from './weather/timeline.ts'
import { decodeTimeline, encodeTimeline } from './weather/timeline-bytes.ts'

export type TimelinesOptions = FreshnessPolicy & {
  /** How long a failed refresh rests. */
  readonly retryAfterMs: number
  /** How long a read waits for a load. */
  readonly waitForMs: number
  /** What the first tier may hold. */
  readonly memoryBytes: number
  /** What is asked of whom, whatever the cell: entries of another question are never read. */
  readonly question: string
}

export type TimelinesParts = {
  readonly provider: Pick<Provider, 'load'>
  readonly store: ByteStore
  readonly clock: Clock
  readonly observer: CacheObserver & SharedTierObserver
}

export type Timelines = ReadThrough<Cell, Timeline> & {
  /** What the first tier holds now. */
  held(): { entries: number; bytes: number }
}

export const createTimelines = (options: TimelinesOptions, parts: TimelinesParts): Timelines => {
  const { provider, store, clock, observer } = parts
  const entryOf = (key: string, value: Timeline) => ({
    value,
    fetchedAt: value.fetchedAt,
    bytes: bytesOf(value),
    lot: lotOf(key, value.fetchedAt),
  })
  const codec = {
    encode: ({ value }: { value: Timeline }) => encodeTimeline(value, { generation: 0, run: null }),
    decode: (bytes: Buffer, key: string) => {
      const timeline = decodeTimeline(bytes)?.timeline
      return timeline && entryOf(key, timeline)
    },
  }
  const memory = createMemoryTier<Timeline>(options.memoryBytes)
  const question = hash('sha256', options.question).slice(0, 12)
  const keyOf = (cell: Cell) => `${question}:${cell.id}`
  const cache = createReadThrough<Cell, Timeline>({
    keyOf,
    load: async cell => entryOf(keyOf(cell), await provider.load(cell)),
    memory,
    shared: createSharedTier(store, codec, options, observer),
    policy: options,
    retryAfterMs: options.retryAfterMs,
    waitForMs: options.waitForMs,
    clock,
    observer,
  })
  return { read: cache.read, held: () => ({ entries: memory.size, bytes: memory.bytes }) }
}
