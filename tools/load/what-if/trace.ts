// The traffic of files as columns: read once for all settings, and shared by the threads that try them. Of a request only
// what decides about the cache is kept.

import { arrivalOrderOf, createColumn, createTable } from '../traffic/columns.ts'
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

// Beyond these, values are so odd that one more stands for none.
const maxEncodings = 1_000

/** @param batches those that are far out of place are put in their place */
export const readTrace = async (batches: AsyncIterable<readonly TrafficRequest[]>): Promise<Trace> => {
  const at = createColumn(Float64Array)
  const path = createColumn(Uint32Array)
  const encoding = createColumn(Uint16Array)
  const key = createColumn(Uint32Array)
  // Each begins with the one that stands for none.
  const [paths, keys, encodings] = [
    createTable<string>(),
    createTable<string>(),
    createTable<string>(maxEncodings),
  ]
  const numberIn = (table: typeof paths, text = ''): number => table.numberOf(text, () => text)
  for (const table of [paths, encodings, keys]) numberIn(table)
  const leftOut = { method: 0, refused: 0, keyless: 0 }
  let rows = 0
  for await (const batch of batches)
    for (const request of batch) {
      at.put(rows, request.at)
      const reason = leftOutOf(request)
      if (reason !== undefined) leftOut[reason] += 1
      path.put(rows, reason === undefined ? numberIn(paths, request.path) : 0)
      encoding.put(rows, numberIn(encodings, request.accepts))
      key.put(rows, numberIn(keys, request.key))
      rows += 1
    }
  const order = arrivalOrderOf(at.end(rows))
  return {
    at: at.end(rows, order),
    path: path.end(rows, order),
    encoding: encoding.end(rows, order),
    key: key.end(rows, order),
    paths: paths.values,
    encodings: encodings.values,
    keys: keys.values,
    leftOut,
  }
}
