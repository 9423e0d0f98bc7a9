// The traffic of files as columns: read once for all settings, and shared by the threads that try them. Of a request only
// what decides about the cache is kept.

import { arrivalOrderOf } from '../traffic/arrival-order.ts'
import { type LeftOutReason, leftOutOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

export type Trace = {
  /** When each request arrived, ms since the epoch, in order. */
  readonly at: Float64Array
  /** Its place in `paths`; 0 for a request that is left out. */
  readonly path: Uint32Array
  /** The place of its `accept-encoding` in `encodings`; 0 for a request without it. */
  readonly encoding: Uint16Array
  /** The place of its key in `keys`; 0 for a request without one. */
  readonly key: Uint32Array
  readonly paths: readonly string[]
  readonly encodings: readonly string[]
  /** The ids of keys. Cells are loaded for a key, within its share of the budget. */
  readonly keys: readonly string[]
  /** How many requests do not reach the cache, whatever their path. */
  readonly leftOut: Readonly<Record<LeftOutReason, number>>
}

const fewestRows = 1 << 14

// Beyond these, values are so odd that one more stands for none.
const maxEncodings = 1_000

/** Shared between threads, and doubled when full. */
const createColumn = <Kind extends Float64Array | Uint32Array | Uint16Array>(
  Column: new (buffer: SharedArrayBuffer, offset?: number, length?: number) => Kind,
  bytesEach: number,
) => {
  let column = new Column(new SharedArrayBuffer(fewestRows * bytesEach))
  return {
    put: (row: number, value: number): void => {
      if (row >= column.length) {
        const larger = new Column(new SharedArrayBuffer(column.length * 2 * bytesEach))
        larger.set(column)
        column = larger
      }
      column[row] = value
    },
    end: (rows: number, order: Uint32Array | undefined): Kind => {
      if (!order) return new Column(column.buffer as SharedArrayBuffer, 0, rows)
      const sorted = new Column(new SharedArrayBuffer(rows * bytesEach))
      for (let row = 0; row < rows; row++) sorted[row] = column[order[row] as number] as number
      return sorted
    },
  }
}

const createNumbering = (first: string, most: number) => {
  const places = new Map<string, number>([[first, 0]])
  return {
    of: (text: string): number => {
      const known = places.get(text)
      if (known !== undefined) return known
      if (places.size >= most) return 0
      places.set(text, places.size)
      return places.size - 1
    },
    all: (): string[] => [...places.keys()],
  }
}

/** @param batches those that are far out of place are put in their place @param onRead called with each batch: how many requests there are by then */
export const readTrace = async (
  batches: AsyncIterable<readonly TrafficRequest[]>,
  onRead: (requests: number) => void = () => {},
): Promise<Trace> => {
  const at = createColumn(Float64Array, 8)
  const path = createColumn(Uint32Array, 4)
  const encoding = createColumn(Uint16Array, 2)
  const key = createColumn(Uint32Array, 4)
  const paths = createNumbering('', Number.POSITIVE_INFINITY)
  const encodings = createNumbering('', maxEncodings)
  const keys = createNumbering('', Number.POSITIVE_INFINITY)
  const leftOut = { method: 0, refused: 0, keyless: 0 }
  let rows = 0
  let last = Number.NEGATIVE_INFINITY
  let isSorted = true
  for await (const batch of batches) {
    for (const request of batch) {
      if (request.at < last) isSorted = false
      last = request.at
      at.put(rows, request.at)
      const reason = leftOutOf(request)
      if (reason !== undefined) leftOut[reason] += 1
      path.put(rows, reason === undefined ? paths.of(request.path) : 0)
      encoding.put(rows, encodings.of(request.accepts ?? ''))
      key.put(rows, keys.of(request.key ?? ''))
      rows += 1
    }
    onRead(rows)
  }
  const order = isSorted ? undefined : arrivalOrderOf(at.end(rows, undefined))
  return {
    at: at.end(rows, order),
    path: path.end(rows, order),
    encoding: encoding.end(rows, order),
    key: key.end(rows, order),
    paths: paths.all(),
    encodings: encodings.all(),
    keys: keys.all(),
    leftOut,
  }
}
