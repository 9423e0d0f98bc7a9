// The requests of a replay in columns: parsed, sorted and numbered before the first is sent, so that sending is a look-up,
// and in shared memory, so that all workers read one copy. Says nothing about pace; pace.ts does.

import type { Destination } from 'abohawa/common/endpoints.ts'
import { arrivalOrderOf, createColumn, createTable } from '../traffic/columns.ts'
import { endpointOf } from '../traffic/endpoint-of-path.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

export type RequestForm = {
  readonly method: string
  readonly path: string
  readonly accepts: string | undefined
  readonly conditional: boolean
  readonly endpoint: Destination
  /** The same number for all that share an ETag: method aside, one path in one encoding. */
  readonly representation: number
}

export type Schedule = {
  readonly count: number
  /** When the first arrived, ms since the epoch; undefined without a request. */
  readonly from: number | undefined
  /** Arrivals in ms since the first, ascending. */
  readonly at: Float64Array
  readonly form: Uint32Array
  /** 0 for a request without a key, else one more than the index in `keys`. */
  readonly key: Uint32Array
  readonly forms: readonly RequestForm[]
  readonly keys: readonly string[]
  /** Left out, by method. */
  readonly skipped: Readonly<Record<string, number>>
}

type ScheduleOptions = {
  /** Keeps methods other than GET and HEAD; they are sent without a body. */
  readonly anyMethod?: boolean
  readonly onProgress?: (count: number) => void
}

/** @param batches the requests, many at a time */
export const scheduleOf = async (
  batches: AsyncIterable<readonly TrafficRequest[]>,
  { anyMethod = false, onProgress }: ScheduleOptions = {},
): Promise<Schedule> => {
  const at = createColumn(Float64Array)
  const form = createColumn(Uint32Array)
  const key = createColumn(Uint32Array)
  const forms = createTable<RequestForm>()
  const keys = createTable<string>()
  const representations = createTable<true>()
  const skipped: Record<string, number> = {}
  let count = 0
  const add = (request: TrafficRequest): void => {
    const { method, path, accepts, conditional = false } = request
    if (!anyMethod && method !== 'GET' && method !== 'HEAD') {
      skipped[method] = (skipped[method] ?? 0) + 1
      return
    }
    at.put(count, request.at)
    const number = forms.numberOf(`${method} ${path} ${conditional} ${accepts}`, () => ({
      method,
      path,
      accepts,
      conditional,
      endpoint: endpointOf(path),
      representation: representations.numberOf(`${path} ${accepts}`, () => true),
    }))
    form.put(count, number)
    key.put(count, request.key === undefined ? 0 : 1 + keys.numberOf(request.key, id => id))
    count += 1
  }
  for await (const requests of batches) {
    for (const request of requests) add(request)
    onProgress?.(count)
  }
  const order = arrivalOrderOf(at.end(count))
  const arrivals = at.end(count, order)
  const from = arrivals[0]
  for (let i = 0; i < count; i++) arrivals[i] = (arrivals[i] as number) - (from as number)
  return {
    count,
    from,
    at: arrivals,
    form: form.end(count, order),
    key: key.end(count, order),
    forms: forms.values,
    keys: keys.values,
    skipped,
  }
}
