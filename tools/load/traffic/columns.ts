// Requests as columns of numbers: read once, in shared memory, so that all threads of a command have one copy. What is not a number
// stands in a table and is numbered.

type Kind = Float64Array | Uint32Array | Uint16Array

type ColumnOf<Column extends Kind> = {
  new (buffer: SharedArrayBuffer, offset?: number, length?: number): Column
  readonly BYTES_PER_ELEMENT: number
}

const fewestRows = 1 << 10

export const createColumn = <Column extends Kind>(Of: ColumnOf<Column>) => {
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

/** Numbers values by their names, in the order of their first appearance; one that is more than `most` gets 0. */
export const createTable = <Value>(most = Number.POSITIVE_INFINITY) => {
  const numbers = new Map<string, number>()
  const values: Value[] = []
  return {
    values,
    numberOf: (name: string, make: (name: string) => Value): number => {
      const known = numbers.get(name)
      if (known !== undefined) return known
      if (values.length >= most) return 0
      numbers.set(name, values.length)
      return values.push(make(name)) - 1
    },
  }
}

/** The numbers of instants in their order, of one instant in the order in which they stand; undefined where they ascend. */
export const arrivalOrderOf = (at: Float64Array): Uint32Array | undefined =>
  at.every((instant, i) => i === 0 || instant >= (at[i - 1] as number))
    ? undefined
    : Uint32Array.from(at.keys()).sort((a, b) => (at[a] as number) - (at[b] as number) || a - b)
