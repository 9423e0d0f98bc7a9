// A cached timeline as an entry of the cache and as bytes of the shared tier: what it weighs, its lot, its marks.

import { type Entry, lotOf, type Notes } from '../cache/entry.ts'
import type { Codec } from '../cache/shared-tier.ts'
import { bytesOf, type Timeline } from '../weather/timeline.ts'
import { decodeTimeline, encodeTimeline, type Marks, readHead } from '../weather/timeline-bytes.ts'

const notesOf = (key: string, fetchedAt: number, { generation, run }: Marks): Notes => ({
  fetchedAt,
  lot: lotOf(key, fetchedAt),
  generation,
  run,
})

export const entryOf = (key: string, value: Timeline, marks: Marks): Entry<Timeline> => ({
  value,
  bytes: bytesOf(value),
  ...notesOf(key, value.fetchedAt, marks),
})

export const timelineCodec: Codec<Timeline> = {
  encode: ({ value, generation, run }) => encodeTimeline(value, { generation, run }),
  notes: (bytes, key) => {
    const head = readHead(bytes)
    return head && notesOf(key, head.fetchedAt, head.marks)
  },
  decode: (bytes, key) => {
    const decoded = decodeTimeline(bytes)
    return decoded && entryOf(key, decoded.timeline, decoded.marks)
  },
}
