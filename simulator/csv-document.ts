// Formats a document as CSV: a table of the places, then one table for each section with the rows of all places. With several
// places every row begins with a location_id. Separate from document.ts, because tables run across the elements.

import { type Element, type ForecastDocument, fieldOf, type Section } from './document.ts'

const placeColumns = [
  'latitude',
  'longitude',
  'elevation',
  'utc_offset_seconds',
  'timezone',
  'timezone_abbreviation',
]

/** The text of a response, with a blank line before each table of a section. */
export const writeCsv = ({ elements, list }: ForecastDocument): string => {
  const idOf = (element: Element): string[] => (list ? [fieldOf(element, 'location_id') ?? '0'] : [])
  const idColumn = list ? ['location_id'] : []
  const places = elements.map(element => [
    ...idOf(element),
    ...placeColumns.map(name => plain(fieldOf(element, name) ?? 'null')),
  ])
  const tables = sectionNames(elements).map(name => {
    const found = elements.flatMap(element =>
      element.sections
        .filter(section => section.name === name)
        .map(section => ({ id: idOf(element), section })),
    )
    const columns = found[0]?.section.columns ?? []
    const head = [...idColumn, 'time', ...columns.map(column => `${column.name} (${column.unit})`)]
    return [head, ...found.flatMap(({ id, section }) => rowsOf(id, section))]
  })
  return [[[...idColumn, ...placeColumns], ...places], ...tables].map(linesOf).join('\n')
}

const sectionNames = (elements: readonly Element[]): string[] => [
  ...new Set(elements.flatMap(({ sections }) => sections.map(({ name }) => name))),
]

const rowsOf = (id: readonly string[], { times, columns }: Section): string[][] =>
  times.map((time, i) => [...id, plain(time), ...columns.map(({ values }) => plain(values[i] ?? 'null'))])

// Values are JSON: null when missing; quoted texts have no quotes inside.
const plain = (json: string): string => (json === 'null' ? 'NaN' : json.replaceAll('"', ''))

const linesOf = (rows: readonly (readonly string[])[]): string =>
  rows.map(row => `${row.join(',')}\n`).join('')
