// Reads the table of places (CSV) into rows with their line numbers. A field that is no number stays text.

import type { Fault } from 'abohawa/catalogue/check.ts'
import { parseCsv } from 'abohawa/catalogue/csv.ts'
import { refusal } from 'abohawa/catalogue/field-rules.ts'
import { type Field, type Naming, type Row, snapshotNaming } from 'abohawa/catalogue/location-schema.ts'

// Aliases and former ids come from tables of their own.
const { aliases: _aliases, formerIds: _formerIds, ...inTable } = snapshotNaming
/** The columns; only `published` may be left out. */
const tableNaming = { ...inTable, id: 'bbs_code', type: 'level', parentId: 'parent_bbs_code' } as const
type TableField = keyof typeof tableNaming
const tableFields = Object.keys(tableNaming) as TableField[]
const columns = tableFields.map(field => tableNaming[field])
const required = columns.filter(column => column !== tableNaming.published)
const numeric = new Set<Field>(['latitude', 'longitude', 'area_sq_km', 'population'])
const optional = new Set<Field>(['parentId', 'website'])
const flags = new Map([
  ['', undefined],
  ['true', true],
  ['false', false],
])
const plainNumber = /^-?[0-9]+(\.[0-9]+)?$/u

const fieldValue = (field: TableField, text: string): unknown => {
  if (numeric.has(field)) return plainNumber.test(text) ? Number(text) : text
  if (optional.has(field)) return text === '' ? null : text
  if (field === 'published') return flags.has(text) ? flags.get(text) : text
  return text
}

const nameRow = (line: number): string => `row ${line}`

/** The rows of a table and what is wrong with its form; the rows are as complete as the form lets them be. */
export const parseTable = (text: string): { rows: Row[]; faults: Fault[] } => {
  const csv = parseCsv(text, { known: columns, required }, nameRow)
  const faults = [...csv.faults]
  const unparsed = csv.header.length === 0 && faults.some(({ column }) => column === 'the row')
  if (csv.rows.length === 0 && !unparsed)
    faults.push({ row: 'row 2', column: 'the row', message: refusal(undefined, 'at least one place') })

  const present = tableFields.filter(field => csv.header.includes(tableNaming[field]))
  const naming: Naming = Object.fromEntries(present.map(field => [field, tableNaming[field]]))
  const rows = csv.rows.map(({ line, fields }): Row => {
    const filled = present.filter(field => tableNaming[field] in fields)
    const values = filled.map(field => [
      tableNaming[field],
      fieldValue(field, fields[tableNaming[field]] ?? ''),
    ])
    return { row: nameRow(line), naming, fields: Object.fromEntries(values) }
  })
  return { rows, faults }
}
