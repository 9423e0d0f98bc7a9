// The requests of a replay in columns: parsed, sorted and numbered before the first is sent, so that sending is a look-up.

import type { Destination } from 'abohawa/common/endpoints.ts'
import { createTable, readColumns, type TrafficColumns } from '../traffic/columns.ts'
import { endpointOf } from '../traffic/endpoint-of-path.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

export type RequestForm = {
  readonly method: string
  readonly path: string
  readonly accepts: string | undefined
  readonly conditional: boolean
  readonly endpoint: Destination
  /** Equal for requests that share an ETag: the same path and encodings. */
  readonly representation: number
}

/** Arrivals are in ms since the first. */
export type Schedule = TrafficColumns<RequestForm> & {
  /** When the first arrived, ms since the epoch; undefined without a request. */
  readonly from: number | undefined
  /** Left out, by method. */
  readonly skipped: Readonly<Record<string, number>>
}

/** @param anyMethod keeps methods other than GET and HEAD; they are sent without a body */
export const scheduleOf = async (
  batches: AsyncIterable<readonly TrafficRequest[]>,
  anyMethod = false,
): Promise<Schedule> => {
  const representations = createTable<true>()
  const skipped: Record<string, number> = {}
  const formOf = ({ method, path, accepts, conditional = false }: TrafficRequest) => {
    if (!anyMethod && method !== 'GET' && method !== 'HEAD') {
      skipped[method] = (skipped[method] ?? 0) + 1
      return undefined
    }
    const make = (): RequestForm => ({
      ...{ method, path, accepts, conditional },
      endpoint: endpointOf(path),
      representation: representations.numberOf(`${path} ${accepts}`, () => true),
    })
    return { name: `${method} ${path} ${conditional} ${accepts}`, make }
  }
  const columns = await readColumns(batches, formOf)
  const from = columns.at[0]
  for (const [i, instant] of columns.at.entries()) columns.at[i] = instant - (from as number)
  return { ...columns, from, skipped }
}
