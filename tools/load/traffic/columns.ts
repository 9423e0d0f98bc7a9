// Requests as columns of numbers: read once, in shared memory, so that all threads of a command have one copy. What is not a number
// stands in a table and is numbered.

import type { TrafficRequest } from './traffic-request.ts'

export type TrafficColumns<Form> = {
  readonly count: number
  /** When each request arrived, ms since the epoch, ascending. */
  readonly at: Float64Array
  /** Its place in `forms`. */
  readonly form: Uint32Array
  /** 0 for a request without a key, else one more than the place of its id in `keys`. */
  readonly key: Uint32Array
  readonly forms: readonly Form[]
  readonly keys: readonly string[]
}

/**
 * @param batches many requests at a time; those that are far out of place are put in their place
 * @param formOf the form of a request, and a name that it shares with its equals; undefined for one that is left out
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
    /** The first so many rows, in an order of theirs if one is given. */
    end: (rows: number, order?: Uint32Array): Column => {
      if (!order) return new Of(column.buffer as SharedArrayBuffer, 0, rows)
      const sorted = new Of(new SharedArrayBuffer(rows * Of.BYTES_PER_ELEMENT))
      for (let row = 0; row < rows; row++) sorted[row] = column[order[row] as number] as number
      return sorted
    },
  }
}

/** Numbers values by their names, in the order of their first appearance. */
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

/** The numbers of instants in their order, of one instant in the order in which they stand; undefined where they ascend. */
const arrivalOrderOf = (at: Float64Array): Uint32Array | undefined =>
  at.every((instant, i) => i === 0 || instant >= (at[i - 1] as number))
    ? undefined
    : Uint32Array.from(at.keys()).sort((a, b) => (at[a] as number) - (at[b] as number) || a - b)
