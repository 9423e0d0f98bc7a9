// Requests as columns of numbers in shared memory, so that all threads of a command use one copy. Other values are numbered in tables.

import type { TrafficRequest } from './traffic-request.ts'

export type TrafficColumns<Form> = {
  readonly count: number
  /** When each request arrived, ms since the epoch, ascending. */
  readonly at: Float64Array
  /** Index in `forms`. */
  readonly form: Uint32Array
  /** 0 for a request without a key, else 1 + its index in `keys`. */
  readonly key: Uint32Array
  readonly forms: readonly Form[]
  readonly keys: readonly string[]
}

/**
 * @param batches in any order; the columns are sorted
 * @param formOf the form of a request, under a name that equal forms share; undefined leaves the request out
 */
export const readColumns = async <Form>(
  batches: AsyncIterable<readonly TrafficRequest[]>,
  formOf: (request: TrafficRequest) => { readonly name: string; make(): Form } | undefined,
): Promise<TrafficColumns<Form>> => {
  const at = createColumn(Float64Array)
  const form = createColumn(Uint32Array)
  const key = createColumn(Uint32Array)
  const forms = createTable<Form>()
  const keys = createTable<string>()
  let count = 0
  for await (const batch of batches) {
    for (const request of batch) {
      const found = formOf(request)
      if (!found) continue
      const { key: id } = request
      at.put(count, request.at)
      form.put(count, forms.numberOf(found.name, found.make))
      key.put(count, id === undefined ? 0 : 1 + keys.numberOf(id, () => id))
      count += 1
    }
  }
  const order = arrivalOrderOf(at.end(count))
  return {
    count,
    at: at.end(count, order),
    form: form.end(count, order),
    key: key.end(count, order),
    forms: forms.values,
    keys: keys.values,
  }
}

type Kind = Float64Array | Uint32Array

type ColumnOf<Column extends Kind> = {
  new (buffer: SharedArrayBuffer, offset?: number, length?: number): Column
  readonly BYTES_PER_ELEMENT: number
}

const fewestRows = 1 << 10

const createColumn = <Column extends Kind>(Of: ColumnOf<Column>) => {
  let column = new Of(new SharedArrayBuffer(fewestRows * Of.BYTES_PER_ELEMENT))
  return {
    put: (row: number, value: number): void => {
      if (row >= column.length) {
        const larger = new Of(new SharedArrayBuffer(column.length * 2 * Of.BYTES_PER_ELEMENT))
        larger.set(column)
        column = larger
      }
      column[row] = value
    },
    /** The first rows, reordered if an order is given. */
    end: (rows: number, order?: Uint32Array): Column => {
      if (!order) return new Of(column.buffer as SharedArrayBuffer, 0, rows)
      const sorted = new Of(new SharedArrayBuffer(rows * Of.BYTES_PER_ELEMENT))
      for (let row = 0; row < rows; row++) sorted[row] = column[order[row] as number] as number
      return sorted
    },
  }
}

/** Numbers values by name, in order of first appearance. */
export const createTable = <Value>() => {
  const numbers = new Map<string, number>()
  const values: Value[] = []
  return {
    values,
    numberOf: (name: string, make: () => Value): number => {
      const known = numbers.get(name)
      if (known !== undefined) return known
      numbers.set(name, values.length)
      return values.push(make()) - 1
    },
  }
}

/** The stable order of instants; undefined where they already ascend. */
const arrivalOrderOf = (at: Float64Array): Uint32Array | undefined =>
  at.every((instant, i) => i === 0 || instant >= (at[i - 1] as number))
    ? undefined
    : Uint32Array.from(at.keys()).sort((a, b) => (at[a] as number) - (at[b] as number) || a - b)
