// Reads the tables of aliases and of administrative changes, which give places their former codes. Rows are checked here, because
// a snapshot does not know them.

import type { Fault } from 'abohawa/catalogue/check.ts'
import { parseCsv } from 'abohawa/catalogue/csv.ts'
import { dateRule, idRule, nameRules, refusal } from 'abohawa/catalogue/field-rules.ts'
import type { FormerId, Location, LocationId } from 'abohawa/catalogue/location-schema.ts'
import { fold } from 'abohawa/catalogue/search.ts'

type Places = ReadonlyMap<string, Pick<Location, 'type' | 'name_en' | 'name_bn'>>

/** What a table says of each place, by its id, and every fault of its rows. */
type Extras<Item> = { byId: ReadonlyMap<string, readonly Item[]>; faults: readonly Fault[] }

type Table = {
  readonly name: string
  readonly required: readonly string[]
  readonly others: readonly string[]
}

type RowOf = {
  readonly fields: Readonly<Record<string, string>>
  /** Reports the message of a fault, if it is one. */
  report(column: string, message: string | undefined): void
  /** Reports a second row with the same key. */
  once(column: string, key: string, because: string): void
}

const readTable = <Item>(
  { name, required, others }: Table,
  text: string,
  order: (one: Item, other: Item) => number,
  readRow: (row: RowOf) => readonly [id: string, item: Item] | undefined,
): Extras<Item> => {
  const nameRow = (line: number): string => `${name}, row ${line}`
  const csv = parseCsv(text, { known: [...required, ...others], required }, nameRow)
  const faults: Fault[] = [...csv.faults]
  const seen = new Map<string, number>()
  const byId = new Map<string, Item[]>()
  for (const { line, fields } of faults.length > 0 ? [] : csv.rows) {
    const report: RowOf['report'] = (column, message) => {
      if (message !== undefined) faults.push({ row: nameRow(line), column, message })
    }
    const once: RowOf['once'] = (column, key, because) => {
      const first = seen.get(key)
      if (first === undefined) seen.set(key, line)
      else report(column, refusal(fields[column], 'unique', `which ${because} that of ${nameRow(first)}`))
    }
    const read = readRow({ fields, report, once })
    if (read) byId.set(read[0], [...(byId.get(read[0]) ?? []), read[1]].sort(order))
  }
  return { byId, faults }
}

const oneOf = (allowed: readonly string[], value: string): string | undefined =>
  allowed.includes(value) ? undefined : refusal(value, `one of ${allowed.join(', ')}`)

const inTable = (id: string, places: Places): string | undefined =>
  idRule(id) ?? (places.has(id) ? undefined : refusal(id, 'the code of a place in the table'))

/** From the most official to the least; a place found by several aliases is shown with the first. */
const kinds = ['former-official', 'common', 'transliteration']
const languages = ['en', 'bn']

const aliasTable = {
  name: 'aliases',
  required: ['bbs_code', 'language', 'alias', 'kind'],
  others: ['source', 'note'],
}

type Alias = { readonly alias: string; readonly rank: number }

const byRank = (a: Alias, b: Alias): number =>
  a.rank - b.rank || (a.alias < b.alias ? -1 : a.alias > b.alias ? 1 : 0)

/** The aliases of each place, the most official first. */
export const parseAliases = (text: string, places: Places): Extras<string> => {
  const { byId, faults } = readTable<Alias>(aliasTable, text, byRank, ({ fields, report, once }) => {
    const { bbs_code: id = '', language = '', alias = '', kind = '' } = fields
    report('bbs_code', inTable(id, places))
    report('language', oneOf(languages, language))
    report('kind', oneOf(kinds, kind))
    for (const rule of nameRules) report('alias', rule(alias))
    const folded = fold(alias)
    once('alias', `${id}\n${folded}`, 'reads as')
    const place = places.get(id)
    if (place && [place.name_en, place.name_bn].some(name => fold(name) === folded))
      report('alias', refusal(alias, 'another name', 'which reads as the name of the place'))
    return [id, { alias, rank: kinds.indexOf(kind) }]
  })
  return { byId: new Map(byId.entries().map(([id, all]) => [id, all.map(({ alias }) => alias)])), faults }
}

const changeTable = {
  name: 'changes',
  required: ['date', 'kind', 'level', 'old_code', 'new_code', 'in_table'],
  others: [
    ...['name_en', 'name_bn', 'old_parent', 'new_parent'],
    ...['unions_2011', 'source', 'certainty', 'note'],
  ],
}
const inTableWords = ['yes', 'no', 'name only']

const byFormerId = (a: FormerId, b: FormerId): number => (a.id < b.id ? -1 : 1)

/** The former ids of each place, in order. */
export const parseChanges = (text: string, places: Places): Extras<FormerId> =>
  readTable<FormerId>(changeTable, text, byFormerId, ({ fields, report, once }) => {
    const { date = '', level = '', old_code: before = '', new_code: now = '', in_table: isIn = '' } = fields
    if (date !== '') report('date', dateRule(date))
    report('in_table', oneOf(inTableWords, isIn))
    if (isIn !== 'yes' || before === '' || now === '' || before === now) return undefined

    const isStillOne = places.has(before)
      ? refusal(before, 'a code that no place has any more', 'which is in the table of places')
      : undefined
    report('old_code', idRule(before) ?? isStillOne)
    report('new_code', inTable(now, places))
    const { type = level } = places.get(now) ?? {}
    if (type !== level) report('level', refusal(level, `${type}, as ${now} is`))
    once('old_code', before, 'is')
    const id = before as LocationId
    return [now, date === '' ? { id } : { id, until: date }]
  })
