// Chooses requests of a stream: by time, endpoint, key, cell or place, or by a sample of cells. A sample is of
// cells and not of requests, so that what is requested again and again stays so, as a cache needs it to be measured.

import type { Destination } from '../../common/endpoints.ts'
import { type CellOf, recordedCell } from './cell-of-place.ts'
import { endpointOf, placeOf } from './endpoint-of-path.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** All given conditions must hold. */
export type Selection = {
  /** Of cells, from 0 to 1; the same cells in every file. */
  readonly sample?: number | undefined
  /** Gives the cells that were not recorded. */
  readonly cellOf?: CellOf | undefined
  /** An instant, or ms from the first request. */
  readonly from?: Moment | undefined
  /** The first instant that is not taken. */
  readonly to?: Moment | undefined
  /** Ms from `from`, or else from the first request. */
  readonly duration?: number | undefined
  readonly endpoints?: ReadonlySet<Destination> | undefined
  readonly keys?: ReadonlySet<string> | undefined
  /** Names of cells, or places such as `district/3026`. */
  readonly cells?: ReadonlySet<string> | undefined
  /** Of those that are left, the first. */
  readonly head?: number | undefined
}
export type Moment = { readonly at: number } | { readonly after: number }

type Batches = AsyncIterable<readonly TrafficRequest[]>

/** The same order; ends early where nothing more can follow. */
export async function* selected(batches: Batches, selection: Selection): AsyncGenerator<TrafficRequest[]> {
  const { head = Number.POSITIVE_INFINITY } = selection
  let span: Span | undefined
  let count = 0
  for await (const batch of batches) {
    const taken: TrafficRequest[] = []
    let isOver = count >= head
    for (const request of batch) {
      span ??= spanOf(selection, request.at)
      if (request.at >= span.to) isOver = true
      if (isOver) break
      if (request.at < span.from || !holdsFor(selection, request)) continue
      taken.push(request)
      count += 1
      isOver = count >= head
    }
    yield taken
    if (isOver) break
  }
}

type Span = { readonly from: number; readonly to: number }

/** @param begin the instant of the first request */
const spanOf = ({ from, to, duration }: Selection, begin: number): Span => {
  const first = instantOf(from, begin, Number.NEGATIVE_INFINITY)
  const end = instantOf(to, begin, Number.POSITIVE_INFINITY)
  return { from: first, to: duration === undefined ? end : Math.min(end, Math.max(first, begin) + duration) }
}

const instantOf = (moment: Moment | undefined, begin: number, none: number): number =>
  moment === undefined ? none : 'at' in moment ? moment.at : begin + moment.after

const holdsFor = (
  { sample, endpoints, keys, cells, cellOf = recordedCell }: Selection,
  request: TrafficRequest,
): boolean => {
  const { path, key } = request
  const cell = cells || sample !== undefined ? cellOf(request) : undefined
  if (endpoints && !endpoints.has(endpointOf(path))) return false
  if (keys && !(key !== undefined && keys.has(key))) return false
  if (cells && !((cell !== undefined && cells.has(cell)) || cells.has(placeOf(path)))) return false
  return sample === undefined || isSampled({ cell, path }, sample)
}

/** Whether the cell of a request, or its place where the cell is not known, is in a sample of this share. */
export const isSampled = (
  { cell, path }: { readonly cell?: string | undefined; readonly path: string },
  share: number,
): boolean => hashOf(cell ?? placeOf(path)) < share * 2 ** 32

/** FNV-1a with the last step of MurmurHash3, which spreads names that differ in their last digit. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
