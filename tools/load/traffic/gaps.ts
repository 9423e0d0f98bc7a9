// Finds long gaps between requests in the order of arrival, and optionally shortens them by moving all later requests.

import { minuteMs } from 'abohawa/common/calendar.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** `from`: the instant of the request before the gap, as it was read. */
export type GapsFound = {
  readonly count: number
  readonly cutMs: number
  readonly longest: readonly { readonly from: number; readonly ms: number }[]
}

/** Longer gaps are reported unless gaps are shortened. */
export const reportedGapMs = 5 * minuteMs
const maxListed = 5

/** @param longestMs shortens longer gaps to this */
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
    async *pass(batches: AsyncIterable<readonly TrafficRequest[]>) {
      for await (const batch of batches) yield batch.map(passed)
    },
    found: () => found,
  }
}
