// Finds every fault in a set of places, in the order of the rows.

import { type Rule, refusal, rulesWithin, show } from './field-rules.ts'
import {
  type Bounds,
  type Field,
  fieldOf,
  fields,
  isLocationType,
  type Naming,
  optionalFields,
  parentTypeOf,
  type Row,
} from './location-schema.ts'

/** A fault: its row, its column, and a message with what was given and what is allowed. */
export type Fault = Readonly<{ row: string; column: string; message: string }>

/** A fault as one line of text. */
export const faultLine = ({ row, column, message }: Fault): string => `${row}, ${column}: ${message}`

type Sayer = (field: Field, message: string) => void

const checkParent = (row: Row, byId: ReadonlyMap<unknown, Row>, say: Sayer): void => {
  const [id, type, parentId] = [fieldOf(row, 'id'), fieldOf(row, 'type'), fieldOf(row, 'parentId')]
  const wanted = isLocationType(type) ? parentTypeOf(type) : undefined
  if (parentId === null) {
    if (wanted) say('parentId', refusal(parentId, `the id of its ${wanted}`))
    return
  }
  // Without a column of ids no parent can be found; the header's fault is enough.
  if (typeof parentId !== 'string' || row.naming.id === undefined) return
  if (wanted === null) {
    say('parentId', refusal(parentId, `none (a ${type} has no parent)`))
    return
  }
  const allowed = `the id of ${wanted ? `its ${wanted}` : 'a place'}, in the same set`
  const parent = byId.get(parentId)
  if (parent === undefined) {
    say('parentId', refusal(parentId, allowed, 'which no row has as its id'))
    return
  }
  const parentType = fieldOf(parent, 'type')
  if (wanted && isLocationType(parentType) && parentType !== wanted)
    say('parentId', refusal(parentId, allowed, `which is of level ${parentType}`))
  if (typeof id === 'string' && !id.startsWith(parentId))
    say('id', refusal(id, `an id that begins with the id of its parent, ${show(parentId)}`))
}

// An id that names two places would be wrong for one of them.
const checkFormerIds = (
  row: Row,
  byId: ReadonlyMap<unknown, Row>,
  byFormerId: Map<unknown, Row>,
  say: Sayer,
): void => {
  const given = fieldOf(row, 'formerIds')
  if (!Array.isArray(given)) return
  for (const former of given as readonly ({ id?: unknown } | null)[]) {
    const id = former?.id
    const owner = byId.get(id) ?? byFormerId.get(id)
    if (typeof id === 'string' && owner && owner !== row)
      say('formerIds', refusal(id, 'an id that no other place has or had', `the id of ${owner.row}`))
    else if (typeof id === 'string' && owner && fieldOf(row, 'id') === id)
      say('formerIds', refusal(id, 'another id than its own'))
    else byFormerId.set(id, row)
  }
}

type Column = Readonly<{ field: Field; column: string; rules: readonly Rule[] }>

const columnsOf = (naming: Naming, bounds: Bounds): Column[] => {
  const rules = rulesWithin(bounds)
  return fields.flatMap(field => {
    const column = naming[field]
    return column === undefined ? [] : [{ field, column, rules: rules[field] }]
  })
}

const checkRow = (row: Row, columns: readonly Column[], say: Sayer): void => {
  for (const { field, column, rules } of columns) {
    const value = row.fields[column]
    if (value === undefined) {
      if (!optionalFields.has(field)) say(field, 'must have a value')
      continue
    }
    for (const rule of rules) {
      const message = rule(value)
      if (message !== undefined) say(field, message)
    }
  }
}

const firstById = (rows: readonly Row[]): Map<unknown, Row> => {
  const byId = new Map<unknown, Row>()
  for (const row of rows) {
    const id = fieldOf(row, 'id')
    if (!byId.has(id)) byId.set(id, row)
  }
  return byId
}

/** Every fault of the rows, given a catalogue whose places lie within `bounds`. */
export const check = (rows: readonly Row[], bounds: Bounds): Fault[] => {
  const faults: Fault[] = []
  const columns = columnsOf(rows[0]?.naming ?? {}, bounds)
  const known = new Set<string>(columns.map(({ column }) => column))
  const byId = firstById(rows)
  const byFormerId = new Map<unknown, Row>()
  for (const row of rows) {
    for (const column in row.fields)
      if (!known.has(column)) faults.push({ row: row.row, column, message: 'there is no such column' })
    const say: Sayer = (field, message) =>
      faults.push({ row: row.row, column: row.naming[field] ?? field, message })
    checkRow(row, columns, say)
    const id = fieldOf(row, 'id')
    const first = byId.get(id)
    if (typeof id === 'string' && first && first !== row)
      say('id', refusal(id, 'unique', `the id of ${first.row}`))
    checkParent(row, byId, say)
    checkFormerIds(row, byId, byFormerId, say)
  }
  return faults
}
