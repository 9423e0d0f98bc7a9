// The requests of a replay in columns: parsed, sorted and numbered before the first is sent, so that sending is a look-up,
// and in shared memory, so that all workers read one copy. Says nothing about pace; pace.ts does.

import type { Destination } from '../../endpoints.ts'
import { arrivalOrderOf } from '../traffic/arrival-order.ts'
import { endpointOf } from '../traffic/endpoint-of-path.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

/** The distinct requests, without their keys. */
export type RequestForm = {
  readonly method: string
  readonly path: string
  readonly accepts: string | undefined
  readonly conditional: boolean
  readonly endpoint: Destination
  /** The same number for all that share an ETag: method aside, one path in one encoding. */
  readonly representation: number
}

/** Requests by number, in the order of their arrival. */
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
  /** Called after each batch. */
  readonly onProgress?: (count: number) => void
}

/** @param batches the requests, many at a time */
export const scheduleOf = async (
  batches: AsyncIterable<readonly TrafficRequest[]>,
  { anyMethod = false, onProgress }: ScheduleOptions = {},
): Promise<Schedule> => {
  let at = new Float64Array(1024)
  let form = new Uint32Array(1024)
  let key = new Uint32Array(1024)
  const forms = createTable<RequestForm>()
  const keys = createTable<string>()
  const representations = createTable<true>()
  const skipped: Record<string, number> = {}
  let count = 0
  let inOrder = true
  const add = (request: TrafficRequest): void => {
    const { method, path, accepts, conditional = false } = request
    if (!anyMethod && method !== 'GET' && method !== 'HEAD') {
      skipped[method] = (skipped[method] ?? 0) + 1
      return
    }
    if (count === at.length) {
      at = grown(at, new Float64Array(count * 2))
      form = grown(form, new Uint32Array(count * 2))
      key = grown(key, new Uint32Array(count * 2))
    }
    if (count > 0 && request.at < (at[count - 1] as number)) inOrder = false
    at[count] = request.at
    form[count] = forms.numberOf(`${method} ${path} ${conditional} ${accepts}`, () => ({
      method,
      path,
      accepts,
      conditional,
      endpoint: endpointOf(path),
      representation: representations.numberOf(`${path} ${accepts}`, () => true),
    }))
    key[count] = request.key === undefined ? 0 : 1 + keys.numberOf(request.key, () => request.key as string)
    count += 1
  }
  for await (const requests of batches) {
    for (const request of requests) add(request)
    onProgress?.(count)
  }
  const order = inOrder ? undefined : arrivalOrderOf(at.subarray(0, count))
  const begin = count === 0 ? 0 : (at[order?.[0] ?? 0] as number)
  return {
    count,
    from: count === 0 ? undefined : begin,
    at: shared(Float64Array, at, count, order, begin),
    form: shared(Uint32Array, form, count, order),
    key: shared(Uint32Array, key, count, order),
    forms: forms.values,
    keys: keys.values,
    skipped,
  }
}

const createTable = <Value>() => {
  const numbers = new Map<string, number>()
  const values: Value[] = []
  return {
    values,
    numberOf: (name: string, make: () => Value): number => {
      let number = numbers.get(name)
      if (number === undefined) {
        number = values.length
        numbers.set(name, number)
        values.push(make())
      }
      return number
    },
  }
}

const grown = <Column extends Float64Array | Uint32Array>(from: Column, to: Column): Column => {
  to.set(from)
  return to
}

const shared = <Column extends Float64Array | Uint32Array>(
  Of: { new (buffer: SharedArrayBuffer): Column; readonly BYTES_PER_ELEMENT: number },
  from: Column,
  count: number,
  order: Uint32Array | undefined,
  less = 0,
): Column => {
  const column = new Of(new SharedArrayBuffer(count * Of.BYTES_PER_ELEMENT))
  for (let i = 0; i < count; i++) column[i] = (from[order ? (order[i] as number) : i] as number) - less
  return column
}
