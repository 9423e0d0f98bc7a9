// A table of places, as CSV text, read into rows with their line numbers. Mistakes of the header and of the quoting are
// found here; what the cells hold is for check.ts, which is why a cell that is no number stays the text it was.

import { CsvError, parse } from 'csv-parse/sync'
import { closestMatch } from 'leven'
import { refusal } from './cell-rules.ts'
import type { Fault } from './check.ts'
import { type Field, fields, type Naming, type Row, tableNaming } from './location.ts'

const columns = fields.map(field => tableNaming[field])
const required = columns.filter(column => column !== tableNaming.published)
const numeric = new Set<Field>(['latitude', 'longitude', 'area_sq_km', 'population'])
const optional = new Set<Field>(['parentId', 'website'])
const flags = new Map([
  ['', undefined],
  ['true', true],
  ['false', false],
])
const plainNumber = /^-?[0-9]+(\.[0-9]+)?$/u

const cellValue = (field: Field, cell: string): unknown => {
  if (numeric.has(field)) return plainNumber.test(cell) ? Number(cell) : cell
  if (optional.has(field)) return cell === '' ? null : cell
  if (field === 'published') return flags.has(cell) ? flags.get(cell) : cell
  return cell
}

const checkHeader = (header: readonly string[]): Fault[] => {
  const faults = header.flatMap((column, at): Fault[] => {
    const say = (message: string) => [{ row: 'row 1', column: column || `column ${at + 1}`, message }]
    if (header.indexOf(column) < at) return say(refusal(column, 'each column once'))
    if ((columns as readonly string[]).includes(column)) return []
    const nearest = closestMatch(column.trim().toLowerCase(), columns, { maxDistance: 4 })
    const allowed = `one of ${columns.join(', ')}`
    return say(refusal(column, allowed) + (nearest === undefined ? '' : ` (did you mean ${nearest}?)`))
  })
  const missing = required.filter(column => !header.includes(column))
  return [
    ...faults,
    ...missing.map(column => ({
      row: 'row 1',
      column,
      message: refusal(undefined, `a header with the column ${column}`),
    })),
  ]
}

type Line = { record: string[]; info: { lines: number } }

const notCsv = (thrown: CsvError & { lines?: number }, lastWhole: number): Fault => {
  // A quote that never closes is only noticed at the end of the file, far from the row that somebody has to mend.
  const unclosed = thrown.code === 'CSV_QUOTE_NOT_CLOSED'
  const row = `row ${unclosed ? lastWhole + 1 : (thrown.lines ?? 1)}`
  const message = unclosed ? 'a quotation mark opens a cell and nothing closes it' : thrown.message
  return { row, column: 'the row', message: `not CSV: ${message}` }
}

const parseLines = (text: string): { lines: Line[]; faults: Fault[] } => {
  let lastWhole = 0
  const onRecord = (line: Line): Line => {
    lastWhole = line.info.lines
    return line
  }
  const options = {
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    on_record: onRecord,
  } as const
  try {
    // One kind of line break, because the parser counts an empty line that ends in two characters twice.
    return { lines: parse(text.replaceAll('\r\n', '\n'), options as object) as unknown as Line[], faults: [] }
  } catch (thrown) {
    if (!(thrown instanceof CsvError)) throw thrown
    return { lines: [], faults: [notCsv(thrown, lastWhole)] }
  }
}

// The parser counts the line a record ends on; a quoted cell may hold line breaks of its own.
const lineOf = ({ record, info }: Line): number =>
  info.lines - record.reduce((breaks, cell) => breaks + (cell.split('\n').length - 1), 0)

/** The rows of a table and what is wrong with its form; the rows are as complete as the form lets them be. */
export const parseTable = (text: string): { rows: Row[]; faults: Fault[] } => {
  const { lines, faults: unparsed } = parseLines(text)
  if (unparsed.length > 0) return { rows: [], faults: unparsed }
  const [head, ...body] = lines
  const header = head?.record ?? []
  const faults = checkHeader(header)
  if (body.length === 0)
    faults.push({ row: 'row 2', column: 'the row', message: refusal(undefined, 'at least one place') })

  const present = fields.filter(field => header.includes(tableNaming[field]))
  const naming: Naming = Object.fromEntries(present.map(field => [field, tableNaming[field]]))
  const positions = present.map(field => [field, header.indexOf(tableNaming[field])] as const)
  const rows = body.map((line): Row => {
    const row = `row ${lineOf(line)}`
    if (line.record.length > header.length)
      faults.push({
        row,
        column: 'the row',
        message: refusal(line.record.length, `${header.length} cells, as many as the header has`),
      })
    const filled = positions.filter(([, at]) => at < line.record.length)
    const cells = filled.map(([field, at]) => [tableNaming[field], cellValue(field, line.record[at] ?? '')])
    return { row, naming, cells: Object.fromEntries(cells) }
  })
  return { rows, faults }
}
