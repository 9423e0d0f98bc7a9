// Parses CSV text into rows of text fields with their line numbers, and finds faults of header and quoting.

import { CsvError, parse } from 'csv-parse/sync'
import { closestMatch } from 'leven'
import type { Fault } from './check.ts'
import { textOfCell } from './csv-text.ts'
import { refusal } from './field-rules.ts'

/** The allowed columns of a table, and the required ones. */
export type Columns = Readonly<{ known: readonly string[]; required: readonly string[] }>

/** A line of fields by column; a short line lacks the last ones. `line` counts from 1, the header's. */
type CsvRow = Readonly<{ line: number; fields: Readonly<Record<string, string>> }>

/** A parsed text: its header, its rows, and the faults of its form. */
export type Csv = Readonly<{ header: readonly string[]; rows: readonly CsvRow[]; faults: readonly Fault[] }>

const checkHeader = (header: readonly string[], { known, required }: Columns, rowName: string): Fault[] => {
  const faults = header.flatMap((column, at): Fault[] => {
    const fault = (message: string) => [{ row: rowName, column: column || `column ${at + 1}`, message }]
    if (header.indexOf(column) < at) return fault(refusal(column, 'unique', 'twice'))
    if (known.includes(column)) return []
    const nearest = closestMatch(column.trim().toLowerCase(), known, { maxDistance: 4 })
    const allowed = `one of ${known.join(', ')}`
    return fault(refusal(column, allowed) + (nearest === undefined ? '' : ` (did you mean ${nearest}?)`))
  })
  const missing = required.filter(column => !header.includes(column))
  return [
    ...faults,
    ...missing.map(column => ({
      row: rowName,
      column,
      message: `the header must have the column ${column}`,
    })),
  ]
}

type Line = { record: string[]; info: { lines: number } }

const notCsv = (thrown: CsvError & { lines?: number }, lastWhole: number, nameRow: NameRow): Fault => {
  // The parser notices an unclosed quote only at the end of the file, far from the row to repair.
  const unclosed = thrown.code === 'CSV_QUOTE_NOT_CLOSED'
  const message = unclosed ? 'a quotation mark opens a field and nothing closes it' : thrown.message
  const row = nameRow(unclosed ? lastWhole + 1 : (thrown.lines ?? 1))
  return { row, column: 'the row', message: `not CSV: ${message}` }
}

const parseLines = (text: string, nameRow: NameRow): { lines: Line[]; faults: Fault[] } => {
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
    return { lines: [], faults: [notCsv(thrown, lastWhole, nameRow)] }
  }
}

// The parser counts the last line of a record; a quoted field may contain line breaks.
const lineOf = ({ record, info }: Line): number =>
  info.lines - record.reduce((breaks, field) => breaks + (field.split('\n').length - 1), 0)

/** The name of a row in faults, by its line. */
export type NameRow = (line: number) => string

/** The rows of a table and the faults of its form; the rows are as complete as possible. */
export const parseCsv = (text: string, columns: Columns, nameRow: NameRow): Csv => {
  const { lines, faults: unparsed } = parseLines(text, nameRow)
  if (unparsed.length > 0) return { header: [], rows: [], faults: unparsed }
  const [head, ...body] = lines
  const header = (head?.record ?? []).map(textOfCell)
  const faults = checkHeader(header, columns, nameRow(1))
  const positions = columns.known
    .filter(column => header.includes(column))
    .map(column => [column, header.indexOf(column)] as const)
  const rows = body.map((parsed): CsvRow => {
    const { record } = parsed
    const line = lineOf(parsed)
    if (record.length > header.length)
      faults.push({
        row: nameRow(line),
        column: 'the row',
        message: refusal(record.length, `${header.length} fields, as many as the header has`),
      })
    const filled = positions.filter(([, at]) => at < record.length)
    return {
      line,
      fields: Object.fromEntries(filled.map(([column, at]) => [column, textOfCell(record[at] ?? '')])),
    }
  })
  return { header, rows, faults }
}
