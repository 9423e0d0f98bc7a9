// The traffic for `whatif`: only what matters for the cache.

import { readColumns, type TrafficColumns } from '../traffic/columns.ts'
import { type LeftOutReason, leftOutOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

/** `path` is undefined for requests that are left out. */
type RequestForm = { readonly path: string | undefined; readonly accepts: string | undefined }

export type SimulatedTraffic = TrafficColumns<RequestForm> & {
  /** Requests that don't reach the cache, whatever their path. */
  readonly leftOut: Readonly<Record<LeftOutReason, number>>
}

const none = { name: '', make: (): RequestForm => ({ path: undefined, accepts: undefined }) }

export const readSimulatedTraffic = async (
  batches: AsyncIterable<readonly TrafficRequest[]>,
): Promise<SimulatedTraffic> => {
  const leftOut = { method: 0, refused: 0, keyless: 0 }
  const columns = await readColumns(batches, request => {
    const reason = leftOutOf(request)
    if (reason !== undefined) {
      leftOut[reason] += 1
      return none
    }
    const { path, accepts } = request
    return { name: `${path} ${accepts}`, make: () => ({ path, accepts }) }
  })
  return { ...columns, leftOut }
}
