// Finds the gaps of a stream in the order of arrival, and shortens them if that is wanted: the requests behind a gap move
// forward with all that follow.

import { minuteMs } from 'abohawa/common/calendar.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** Of the gaps, the longest few; `from` is the instant of the request before a gap, as it was read. */
export type GapsFound = {
  readonly count: number
  readonly cutMs: number
  readonly longest: readonly { readonly from: number; readonly ms: number }[]
}

/** Longer gaps are found where none are shortened. */
export const reportedGapMs = 5 * minuteMs
const maxListed = 5

/** @param longestMs to which longer gaps are shortened; undefined leaves them */
export const createGaps = (longestMs?: number) => {
  let found: GapsFound = { count: 0, cutMs: 0, longest: [] }
  let last: number | undefined
  const add = (from: number, ms: number): void => {
    const longest = [...found.longest, { from, ms }].sort((one, other) => other.ms - one.ms)
    found = {
      count: found.count + 1,
      cutMs: found.cutMs + (longestMs === undefined ? 0 : ms - longestMs),
      longest: longest.slice(0, maxListed),
    }
  }
  const passed = (request: TrafficRequest): TrafficRequest => {
    const { at } = request
    if (last !== undefined && at - last > (longestMs ?? reportedGapMs)) add(last, at - last)
    last = Math.max(at, last ?? at)
    return found.cutMs === 0 ? request : { ...request, at: at - found.cutMs }
  }
  return {
    /** The same requests, moved where gaps were shortened. */
    async *pass(batches: AsyncIterable<readonly TrafficRequest[]>) {
      for await (const batch of batches) yield batch.map(passed)
    },
    found: () => found,
  }
}
