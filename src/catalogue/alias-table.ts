// Reads the table of aliases (CSV): other names of places in the table of places. Checks its rows here, because a snapshot
// no longer knows which row an alias came from.

import type { Fault } from './check.ts'
import { type CsvRow, parseCsv } from './csv.ts'
import { idRule, nameRules, refusal } from './field-rules.ts'
import type { Location } from './location-schema.ts'
import { fold } from './search.ts'

/** From the most official to the least; a place found by several aliases is shown with the first. */
const kinds = ['former-official', 'common', 'transliteration']
const languages = ['en', 'bn']

const required = ['bbs_code', 'language', 'alias', 'kind']
const columns = { known: [...required, 'source', 'note'], required }
const nameRow = (line: number): string => `aliases, row ${line}`

type Alias = Readonly<{ id: string; alias: string; rank: number }>

const oneOf = (allowed: readonly string[], value: string): string | undefined =>
  allowed.includes(value) ? undefined : refusal(value, `one of ${allowed.join(', ')}`)

const messagesOf = (alias: string, rules: typeof nameRules): string[] =>
  rules.map(rule => rule(alias)).filter(message => message !== undefined)

const byRank = (a: Alias, b: Alias): number =>
  a.rank - b.rank || (a.alias < b.alias ? -1 : a.alias > b.alias ? 1 : 0)

/** The aliases of each place by its id, the most official first, and every fault of the rows. */
export const parseAliases = (
  text: string,
  placesById: ReadonlyMap<string, Pick<Location, 'name_en' | 'name_bn'>>,
): { aliases: ReadonlyMap<string, readonly string[]>; faults: readonly Fault[] } => {
  const csv = parseCsv(text, columns, nameRow)
  if (csv.faults.length > 0) return { aliases: new Map(), faults: csv.faults }
  const faults: Fault[] = []
  const seen = new Map<string, number>()

  const aliasIn = ({ line, fields }: CsvRow): Alias[] => {
    const { bbs_code: id = '', language = '', alias = '', kind = '' } = fields
    const report = (column: string, message: string | undefined) => {
      if (message !== undefined) faults.push({ row: nameRow(line), column, message })
    }
    const place = placesById.get(id)
    report('bbs_code', idRule(id) ?? (place ? undefined : refusal(id, 'the code of a place in the table')))
    report('language', oneOf(languages, language))
    report('kind', oneOf(kinds, kind))
    for (const message of messagesOf(alias, nameRules)) report('alias', message)

    const folded = fold(alias)
    const key = `${id}\n${folded}`
    const first = seen.get(key)
    if (first !== undefined)
      report('alias', refusal(alias, 'each once', `which reads as that of ${nameRow(first)}`))
    else seen.set(key, line)
    if (place && [place.name_en, place.name_bn].some(name => fold(name) === folded))
      report('alias', refusal(alias, 'another name', 'which reads as the name of the place'))
    return [{ id, alias, rank: kinds.indexOf(kind) }]
  }

  const aliases = Map.groupBy(csv.rows.flatMap(aliasIn), ({ id }) => id)
  return {
    aliases: new Map(
      aliases.entries().map(([id, found]) => [id, found.toSorted(byRank).map(({ alias }) => alias)]),
    ),
    faults,
  }
}
