// A cached timeline as an entry of the cache and as bytes of the shared tier: what it weighs, its lot, its marks. What
// comes from the shared tier is held against what this gateway asks for; the form of the bytes is the weather's.

import { type Entry, lotOf, type Notes } from '../cache/entry.ts'
import type { Codec } from '../cache/shared-tier.ts'
import type { Calendar } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { type Horizon, stepsWithin } from '../weather/horizon.ts'
import { isPlausible } from '../weather/plausible.ts'
import { bytesOf, type Timeline } from '../weather/timeline.ts'
import {
  decodeTimeline,
  encodeTimeline,
  type Marks,
  mostEncodedBytes,
  readHead,
} from '../weather/timeline-bytes.ts'

export type TimelineCodecParts = {
  readonly horizon: Horizon
  readonly calendar: Calendar
  readonly clock: Clock
  /** The number of the newest purge this process has heard of. */
  readonly newestPurge: () => number
}

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

export const createTimelineCodec = ({
  horizon,
  calendar,
  clock,
  newestPurge,
}: TimelineCodecParts): Codec<Timeline> => {
  const lengths = stepsWithin(horizon)
  const expectedAt = (key: string) => ({ key, lengths, calendar, now: clock.now() })
  // No entry escapes purges by the number it brings: it knows of none that this process does not know of.
  const believed = ({ generation, run }: Marks): Marks => ({
    generation: Math.min(generation, newestPurge()),
    run,
  })
  return {
    mostBytes: mostEncodedBytes(lengths),
    encode: ({ value, generation, run }, key) => encodeTimeline(key, value, { generation, run }),
    notes: (bytes, key) => {
      const head = readHead(bytes, expectedAt(key))
      return typeof head === 'string' ? { refused: head } : notesOf(key, head.fetchedAt, believed(head.marks))
    },
    decode: (bytes, key) => {
      const decoded = decodeTimeline(bytes, expectedAt(key))
      if (typeof decoded === 'string') return { refused: decoded }
      if (!isPlausible(decoded.timeline)) return { refused: 'out_of_range' }
      return entryOf(key, decoded.timeline, believed(decoded.marks))
    },
  }
}
