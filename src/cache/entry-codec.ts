// Timelines as cache entries (key, size, jitter, end, metadata) and as bytes of the shared tier. Validates decoded bytes against
// this gateway's configuration.

import { hash } from 'node:crypto'
import type { Calendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ProviderProtocol } from '../provider/protocol.ts'
import type { CellId } from '../weather/cell.ts'
import { coverageEndOf, usualLengths } from '../weather/horizon.ts'
import { isPlausible } from '../weather/ranges.ts'
import { bytesOf, type Timeline } from '../weather/timeline.ts'
import {
  decodeTimeline,
  encodeTimeline,
  type LoadMetadata,
  maxEncodedBytes,
  readHead,
} from '../weather/timeline-bytes.ts'
import { type Entry, type EntryMetadata, jitterOf } from './freshness.ts'
import type { Codec } from './tiers.ts'

/**
 * The cache namespace: a hash of provider, variables and time zone that prefixes every cache key, so that an entry knows its
 * upstream. Entries of another namespace are never read: a change of these settings starts with an empty cache, and two upstreams
 * share a store without each other's entries, leases and demand.
 */
export const namespaceOf = (baseUrl: string, { identity }: Pick<ProviderProtocol, 'identity'>): string =>
  hash('sha256', baseUrl + identity).slice(0, 12)

/** The cache key of a cell. */
export const keyFor = (namespace: string, cell: CellId): string => `${namespace}:${cell}`

const metadataOf = (
  key: string,
  fetchedAt: number,
  { generation, run }: LoadMetadata,
  coversUntil: number,
  upstream: string | undefined,
): EntryMetadata => ({
  fetchedAt,
  coversUntil,
  jitter: jitterOf(key, fetchedAt),
  generation,
  run,
  upstream,
})

/**
 * @param hourlyHours how many hours a response has
 * @param upstream its name, where there are several
 */
export const entryOf = (
  key: string,
  value: Timeline,
  metadata: LoadMetadata,
  hourlyHours: number,
  upstream?: string | undefined,
): Entry<Timeline> => ({
  value,
  bytes: bytesOf(value),
  ...metadataOf(key, value.fetchedAt, metadata, coverageEndOf(value, hourlyHours), upstream),
})

/**
 * @param hourlyHours how many hours a response has: an entry ends where it has fewer
 * @param upstream whose entries they are, by its name; undefined where there is one
 */
export const createTimelineCodec = ({
  hourlyHours,
  calendar,
  clock,
  upstream,
}: {
  readonly hourlyHours: number
  readonly calendar: Calendar
  readonly clock: Clock
  readonly upstream?: string | undefined
}): Codec<Timeline> => {
  const expectedAt = (key: string) => ({ key, lengths: usualLengths, calendar, now: clock.now() })
  return {
    maxBytes: maxEncodedBytes,
    encode: ({ value, generation, run }, key) => encodeTimeline(key, value, { generation, run }),
    metadata: (bytes, key) => {
      const head = readHead(bytes, expectedAt(key))
      return typeof head === 'string'
        ? { refused: head }
        : metadataOf(key, head.fetchedAt, head.metadata, coverageEndOf(head, hourlyHours), upstream)
    },
    decode: (bytes, key) => {
      const decoded = decodeTimeline(bytes, expectedAt(key))
      if (typeof decoded === 'string') return { refused: decoded }
      if (!isPlausible(decoded.timeline)) return { refused: 'out_of_range' }
      return entryOf(key, decoded.timeline, decoded.metadata, hourlyHours, upstream)
    },
  }
}
