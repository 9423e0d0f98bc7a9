// Reads the table of administrative changes (CSV) for former codes: the code that a place had before the one in the table of
// places. Rows that change no code, or whose place is not in the table, are only checked for their form.

import type { Fault } from './check.ts'
import { type CsvRow, parseCsv } from './csv.ts'
import { dateRule, idRule, refusal } from './field-rules.ts'
import type { FormerId, Location, LocationId } from './location-schema.ts'

const required = ['date', 'kind', 'level', 'old_code', 'new_code', 'in_table']
const others = [
  ...['name_en', 'name_bn', 'old_parent', 'new_parent'],
  ...['unions_2011', 'source', 'certainty', 'note'],
]
const columns = { known: [...required, ...others], required }
const inTableWords = ['yes', 'no', 'name only']
const nameRow = (line: number): string => `changes, row ${line}`

type Places = ReadonlyMap<string, Pick<Location, 'type'>>
type Report = (column: string, message: string | undefined) => void

const checkCodes = (fields: CsvRow['fields'], places: Places, report: Report): void => {
  const { level = '', old_code: before = '', new_code: now = '' } = fields
  report(
    'old_code',
    idRule(before) ??
      (places.has(before)
        ? refusal(before, 'a code that no place has any more', 'which is in the table of places')
        : undefined),
  )
  const place = places.get(now)
  report('new_code', idRule(now) ?? (place ? undefined : refusal(now, 'the code of a place in the table')))
  if (place && place.type !== level) report('level', refusal(level, `${place.type}, as ${now} is`))
}

/** The former ids of each place by its id, in order, and every fault of the rows. */
export const parseChanges = (
  text: string,
  places: Places,
): { formerIds: ReadonlyMap<string, readonly FormerId[]>; faults: readonly Fault[] } => {
  const csv = parseCsv(text, columns, nameRow)
  if (csv.faults.length > 0) return { formerIds: new Map(), faults: csv.faults }
  const faults: Fault[] = []
  const seen = new Map<string, number>()

  const changeIn = ({ line, fields }: CsvRow): { id: string; former: FormerId }[] => {
    const { date = '', old_code: before = '', new_code: now = '', in_table: inTable = '' } = fields
    const report: Report = (column, message) => {
      if (message !== undefined) faults.push({ row: nameRow(line), column, message })
    }
    if (date !== '') report('date', dateRule(date))
    if (!inTableWords.includes(inTable))
      report('in_table', refusal(inTable, `one of ${inTableWords.join(', ')}`))
    const changesCode = before !== '' && now !== '' && before !== now
    if (inTable !== 'yes' || !changesCode) return []

    checkCodes(fields, places, report)
    const first = seen.get(before)
    if (first !== undefined)
      report('old_code', refusal(before, 'each once', `which is that of ${nameRow(first)}`))
    else seen.set(before, line)
    const id = before as LocationId
    return [{ id: now, former: date === '' ? { id } : { id, until: date } }]
  }

  const changes = Map.groupBy(csv.rows.flatMap(changeIn), ({ id }) => id)
  const byId = (a: FormerId, b: FormerId): number => (a.id < b.id ? -1 : 1)
  return {
    formerIds: new Map(
      changes.entries().map(([id, found]) => [id, found.map(({ former }) => former).toSorted(byId)]),
    ),
    faults,
  }
}
