// Finds the gaps of a stream in the order of arrival, and shortens them if that is wanted: the requests behind a gap move
// forward with all that follow.

import type { TrafficRequest } from './traffic-request.ts'

type Gap = {
  /** The instant of the request before it, as it was read. */
  readonly from: number
  readonly ms: number
}

export type Gaps = {
  /** The same requests, moved where gaps were shortened. */
  pass(batches: AsyncIterable<readonly TrafficRequest[]>): AsyncGenerator<TrafficRequest[]>
  found(): { readonly count: number; readonly cutMs: number; readonly longest: readonly Gap[] }
}

const maxListed = 5

/**
 * @param reportedMs a gap that is longer is found
 * @param longestMs to which longer gaps are shortened; undefined leaves them
 */
export const createGaps = (reportedMs: number, longestMs?: number): Gaps => {
  let count = 0
  let cutMs = 0
  let longest: Gap[] = []
  let last: number | undefined
  const add = (gap: Gap): void => {
    count += 1
    longest = [...longest, gap].sort((one, other) => other.ms - one.ms).slice(0, maxListed)
  }
  return {
    async *pass(batches) {
      for await (const batch of batches) {
        const passed: TrafficRequest[] = []
        for (const request of batch) {
          const ms = last === undefined ? 0 : request.at - last
          if (ms > (longestMs ?? reportedMs)) {
            add({ from: last as number, ms })
            if (longestMs !== undefined) cutMs += ms - longestMs
          }
          last = Math.max(request.at, last ?? request.at)
          passed.push(cutMs === 0 ? request : { ...request, at: request.at - cutMs })
        }
        yield passed
      }
    },
    found: () => ({ count, cutMs, longest }),
  }
}
