// A timeline as bytes for the shared cache tier: a versioned head, the columns as they lie in memory, deflated.
// Bytes of another version, damaged or cut off count as absent: decoding answers undefined and never throws.

import { deflateSync, inflateSync } from 'node:zlib'
import type { Series, Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './variables.ts'

const version = 1
const headBytes = 1 + 8 + 3 * (8 + 4)
const columnCounts = [currentUnits, hourlyUnits, dailyUnits].map(units => Object.keys(units).length)

export const encodeTimeline = (timeline: Timeline): Buffer => {
  const head = Buffer.alloc(headBytes)
  head.writeUInt8(version, 0)
  head.writeDoubleLE(timeline.fetchedAt, 1)
  const parts: Buffer[] = []
  const sections = [timeline.quarterHours, timeline.hours, timeline.days]
  sections.forEach((series, i) => {
    head.writeDoubleLE(series.start, 9 + i * 12)
    head.writeUInt32LE(series.length, 17 + i * 12)
    for (const column of series.columns)
      parts.push(Buffer.from(column.buffer, column.byteOffset, column.byteLength))
  })
  return Buffer.concat([head, deflateSync(Buffer.concat(parts), { level: 1 })])
}

export const decodeTimeline = (bytes: Buffer): Timeline | undefined => {
  try {
    if (bytes.length <= headBytes || bytes.readUInt8(0) !== version) return undefined
    const values = inflateSync(bytes.subarray(headBytes))
    let offset = 0
    const sections = columnCounts.map((columnCount, i): Series => {
      const length = bytes.readUInt32LE(17 + i * 12)
      const columns = Array.from({ length: columnCount }, () => {
        // A copy, because a view needs an alignment that the inflated buffer does not promise.
        const column = new Float32Array(new Uint8Array(values.subarray(offset, offset + length * 4)).buffer)
        if (column.length !== length) throw new RangeError('cut off')
        offset += length * 4
        return column
      })
      return { start: bytes.readDoubleLE(9 + i * 12), length, columns }
    })
    const [quarterHours, hours, days] = sections
    if (offset !== values.length || !quarterHours || !hours || !days) return undefined
    return { fetchedAt: bytes.readDoubleLE(1), quarterHours, hours, days }
  } catch {
    return undefined
  }
}
