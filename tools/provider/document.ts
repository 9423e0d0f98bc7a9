// The response before it is text: elements with fields and sections, whose values are formatted as JSON. Separate from the text, so
// that a fault can damage exactly one part.

/** Names with values that are already JSON. */
type Printed = readonly (readonly [name: string, json: string])[]

/** One of `current`, `minutely_15`, `hourly`, `daily`. */
export type Section = {
  readonly name: string
  /** `values` holds one printed value for each time. */
  readonly columns: readonly { name: string; unit: string; values: readonly string[] }[]
  readonly times: readonly string[]
  /** In seconds; then the section has one instant instead of arrays. */
  readonly interval?: number
}

export type Element = { readonly fields: Printed; readonly sections: readonly Section[] }

/** A whole response; `list` makes an array of it. */
export type ForecastDocument = { readonly elements: readonly Element[]; readonly list: boolean }

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
