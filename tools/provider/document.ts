// The response before it is text: elements of header fields and sections, with every value already formatted as JSON.
// Separate from the text, so that a fault can damage exactly one part. Knows no weather.

/** Pairs of a name and a value that is JSON already. */
type Printed = readonly (readonly [name: string, json: string])[]

/** One of `current`, `minutely_15`, `hourly`, `daily`. */
export type Section = {
  readonly name: string
  /** `values` holds one printed value for each time. */
  readonly columns: readonly { name: string; unit: string; values: readonly string[] }[]
  readonly times: readonly string[]
  /** The section holds one instant, with the seconds it stands for, instead of arrays. */
  readonly interval?: number
}

/** The response for one point. */
export type Element = { readonly fields: Printed; readonly sections: readonly Section[] }

/** A whole response; `list` makes an array of it. */
export type ForecastDocument = { readonly elements: readonly Element[]; readonly list: boolean }

/** The text of a response. */
export const writeDocument = ({ elements, list }: ForecastDocument): string => {
  const texts = elements.map(writeElement)
  return list ? `[${texts.join(',')}]` : (texts[0] ?? '')
}

const writeElement = ({ fields, sections }: Element): string =>
  writeObject([...fields, ...sections.flatMap(writeSection)])

const writeSection = ({ name, columns, times, interval }: Section): Printed => {
  const single = interval !== undefined
  const units: Printed = [
    ['time', '"iso8601"'],
    ...(single ? [['interval', '"seconds"'] as const] : []),
    ...columns.map(column => [column.name, JSON.stringify(column.unit)] as const),
  ]
  const write = (values: readonly string[]) => (single ? (values[0] ?? 'null') : `[${values.join(',')}]`)
  const data: Printed = [
    ['time', write(times)],
    ...(single ? [['interval', String(interval)] as const] : []),
    ...columns.map(column => [column.name, write(column.values)] as const),
  ]
  return [
    [`${name}_units`, writeObject(units)],
    [name, writeObject(data)],
  ]
}

const writeObject = (pairs: Printed): string =>
  `{${pairs.map(([name, json]) => `"${name}":${json}`).join(',')}}`
