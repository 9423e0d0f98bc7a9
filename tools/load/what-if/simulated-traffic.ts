// The traffic that settings are tried on: of a request only what decides about the cache is kept.

import { readColumns, type TrafficColumns } from '../traffic/columns.ts'
import { type LeftOutReason, leftOutOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

/** The path is undefined for requests that are left out; `accepts` is the header `accept-encoding`. */
type RequestForm = { readonly path: string | undefined; readonly accepts: string | undefined }

export type SimulatedTraffic = TrafficColumns<RequestForm> & {
  /** How many requests do not reach the cache, whatever their path. */
  readonly leftOut: Readonly<Record<LeftOutReason, number>>
}

const none = { name: '', make: (): RequestForm => ({ path: undefined, accepts: undefined }) }

/** @param batches those that are far out of place are put in their place */
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
