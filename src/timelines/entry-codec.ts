// A cached timeline as an entry of the cache and as bytes of the shared tier: what it weighs, its lot, its marks.

import { type Entry, lotOf } from '../cache/entry.ts'
import type { Codec } from '../cache/shared-tier.ts'
import { bytesOf, type Timeline } from '../weather/timeline.ts'
import { decodeTimeline, encodeTimeline, type Marks } from '../weather/timeline-bytes.ts'

export const entryOf = (key: string, value: Timeline, { generation, run }: Marks): Entry<Timeline> => ({
  value,
  fetchedAt: value.fetchedAt,
  bytes: bytesOf(value),
  lot: lotOf(key, value.fetchedAt),
  generation,
  run,
})

export const timelineCodec: Codec<Timeline> = {
  encode: ({ value, generation, run }) => encodeTimeline(value, { generation, run }),
  decode: (bytes, key) => {
    const decoded = decodeTimeline(bytes)
    return decoded && entryOf(key, decoded.timeline, decoded.marks)
  },
}
