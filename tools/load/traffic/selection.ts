// Selects requests: by time, endpoint, key, cell or place, or by a sample of cells. A sample takes whole cells, because a sample of
// requests would lower the hit rate.

import { type Destination, hasWeather } from 'abohawa/common/endpoints.ts'
import { type CellOf, endpointOf, pathsOfPlaces, placeOf, recordedCell } from './endpoint-of-path.ts'
import { hashOf } from './generate/random.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** All given conditions must hold. */
export type Selection = {
  /** The share of cells, from 0 to 1; the same cells in every file. */
  readonly sample?: number | undefined
  /** An instant, or ms from the first request. */
  readonly from?: Moment
  readonly to?: Moment
  /** Ms from `from`, else from the first request. */
  readonly duration?: number
  readonly endpoint?: readonly Destination[]
  readonly key?: readonly string[]
  /** Names of cells, or places such as `district/3026`. */
  readonly cell?: readonly string[]
  /** The maximum number of requests. */
  readonly head?: number
}
export type Moment = { readonly at: number } | { readonly after: number }

/** Keeps the order; ends early where nothing more can match. @param cellOf finds cells that were not recorded */
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
    // A recorded cell is for one place only.
    const asked = paths.length === 1 ? [request] : paths.map(path => ({ path }))
    const cellsOfIt = asked.map(cellOf)
    const places = paths.map(placeOf)
    const isNamed = (name: string | undefined): boolean => name !== undefined && cells?.has(name) === true
    if (cells && !cellsOfIt.some(isNamed) && !places.some(isNamed)) return false
    // A list is in the sample if its first place is, so that lists are sampled like other requests.
    const named = hasWeather(endpointOf(request.path)) ? places[0] : request.path
    return sample === undefined || isSampled(cellsOfIt[0] ?? named ?? '', sample)
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

/** @param name of a cell, or of a place with an unknown cell */
export const isSampled = (name: string, share: number): boolean => spreadHashOf(name) < share * 2 ** 32

/** With the last step of MurmurHash3, which spreads names that differ in their last digit. */
const spreadHashOf = (text: string): number => {
  let hash = hashOf(text)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
