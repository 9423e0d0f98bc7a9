// Chooses requests of a stream: by time, endpoint, key, cell or place, or by a sample of cells. A sample is of
// cells and not of requests, so that what is requested again and again stays so, as a cache needs it to be measured.

import type { Destination } from 'abohawa/common/endpoints.ts'
import { type CellOf, endpointOf, pathsOfPlaces, placeOf, recordedCell } from './endpoint-of-path.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** All given conditions must hold. */
export type Selection = {
  /** Of cells, from 0 to 1; the same cells in every file. */
  readonly sample?: number | undefined
  /** An instant, or ms from the first request. */
  readonly from?: Moment
  readonly to?: Moment
  /** Ms from `from`, or else from the first request. */
  readonly duration?: number
  readonly endpoint?: readonly Destination[]
  readonly key?: readonly string[]
  /** Names of cells, or places such as `district/3026`. */
  readonly cell?: readonly string[]
  /** Of those that are left, the first. */
  readonly head?: number
}
export type Moment = { readonly at: number } | { readonly after: number }

/** The same order; ends early where nothing more can follow. @param cellOf gives the cells that were not recorded */
export async function* selected(
  batches: AsyncIterable<readonly TrafficRequest[]>,
  { sample, from, to, duration, endpoint, key, cell, head = Number.POSITIVE_INFINITY }: Selection,
  cellOf: CellOf = recordedCell,
): AsyncGenerator<TrafficRequest[]> {
  const [endpoints, keys, cells] = [setOf(endpoint), setOf(key), setOf(cell)]
  const isChosen = (request: TrafficRequest): boolean => {
    if (endpoints && !endpoints.has(endpointOf(request.path))) return false
    if (keys && !(request.key !== undefined && keys.has(request.key))) return false
    if (cells === undefined && sample === undefined) return true
    const paths = pathsOfPlaces(request.path)
    // A recorded cell is that of one place.
    const asked = paths.length === 1 ? [request] : paths.map(path => ({ path }))
    const cellsOfIt = asked.map(cellOf)
    const places = paths.map(placeOf)
    const isNamed = (name: string | undefined): boolean => name !== undefined && cells?.has(name) === true
    if (cells && !cellsOfIt.some(isNamed) && !places.some(isNamed)) return false
    // A list is in a sample where the cell of its first place is: as many lists as other requests.
    return sample === undefined || isSampled(cellsOfIt[0] ?? places[0] ?? '', sample)
  }
  let span: { readonly from: number; readonly to: number } | undefined
  const spanFrom = (begin: number) => {
    const first = instantOf(from, begin) ?? Number.NEGATIVE_INFINITY
    const end = instantOf(to, begin) ?? Number.POSITIVE_INFINITY
    const last = duration === undefined ? end : Math.max(first, begin) + duration
    return { from: first, to: Math.min(end, last) }
  }
  let left = head
  for await (const batch of batches) {
    const taken: TrafficRequest[] = []
    let isOver = left <= 0
    for (const request of batch) {
      span ??= spanFrom(request.at)
      isOver ||= request.at >= span.to
      if (isOver) break
      if (request.at < span.from || !isChosen(request)) continue
      taken.push(request)
      left -= 1
      isOver = left <= 0
    }
    yield taken
    if (isOver) break
  }
}

const setOf = <Value>(values: readonly Value[] | undefined) => values && new Set<Value>(values)

const instantOf = (moment: Moment | undefined, begin: number): number | undefined =>
  moment && ('at' in moment ? moment.at : begin + moment.after)

/** Whether a cell, or a place whose cell is not known, is in a sample of this share. */
export const isSampled = (name: string, share: number): boolean => hashOf(name) < share * 2 ** 32

/** FNV-1a with the last step of MurmurHash3, which spreads names that differ in their last digit. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
