// Builds a snapshot from the tables of places, aliases and changes. A fault changes nothing, and unpublished places stay
// unpublished.

import { existsSync } from 'node:fs'
import { check, type Fault, faultLine } from 'abohawa/catalogue/check.ts'
import {
  type Bounds,
  type Counts,
  countByType,
  fieldOf,
  type Location,
  locationOf,
  type Row,
} from 'abohawa/catalogue/location-schema.ts'
import { composeSnapshot, type Facts, formatSnapshot } from 'abohawa/catalogue/snapshot.ts'
import { factsFaults } from 'abohawa/catalogue/snapshot-form.ts'
import { catalogueFile, inspectSnapshot, readSnapshot, readText } from 'abohawa/catalogue/snapshot-reader.ts'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { editExclusively } from './exclusive-edit.ts'
import { parseAliases, parseChanges } from './other-tables.ts'
import { parseTable } from './table.ts'

/** The input and output of a build; `builtOn` is the date in the snapshot, YYYY-MM-DD. */
export type BuildOptions = Readonly<{
  csvPath: string
  /** The table of aliases; without it no place has any. */
  aliasesPath?: string | undefined
  /** The table of administrative changes, for former ids; without it no place has any. */
  changesPath?: string | undefined
  outPath: string
  facts: Facts
  builtOn: string
}>

/** The result of a build; with any fault nothing is written. `keptUnpublished` are sorted ids. */
export type BuildReport = Readonly<{
  counts: Counts
  /** How many aliases and former ids the snapshot has. */
  aliases: number
  formerIds: number
  faults: readonly Fault[]
  keptUnpublished: readonly string[]
}>

/**
 * Every fault of a file and how many places of each level it has; a table if its name ends in .csv, else a snapshot.
 * @param boundsOf the box of a table, which states none
 */
export const checkFile = async (
  path: string,
  boundsOf: () => Promise<Bounds>,
): Promise<{ counts: Counts; faults: readonly Fault[] }> => {
  const text = await readText(path)
  if (!path.toLowerCase().endsWith('.csv')) return inspectSnapshot(text)
  const { rows, faults } = parseTable(text)
  return {
    counts: countByType(rows.map(row => fieldOf(row, 'type'))),
    faults: [...faults, ...check(rows, await boundsOf())],
  }
}

const unpublishedIn = async (path: string): Promise<ReadonlySet<string>> => {
  const text = await readText(path).catch((thrown: InputError) => {
    if ((thrown.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return undefined
    throw thrown
  })
  if (text === undefined) return new Set()
  // Reads a faulty file too: it still lists what is unpublished, and a rebuild repairs its faults.
  try {
    const { locations } = JSON.parse(text) as { locations: { id: string; published?: boolean }[] }
    return new Set(locations.filter(({ published }) => published === false).map(({ id }) => id))
  } catch (thrown) {
    throw new InputError(
      `${path} is not a snapshot of places, so a build can't keep its unpublished places; ` +
        'move the file away or give another --out',
      { cause: thrown },
    )
  }
}

const noExtras = { byId: new Map<string, never[]>(), faults: [] }

const sizeOf = (lists: ReadonlyMap<string, readonly unknown[]>): number =>
  lists.values().reduce((sum, list) => sum + list.length, 0)

/** Builds the snapshot at `outPath`; InputError when a file can't be read or written. */
export const buildSnapshot = async ({
  csvPath,
  aliasesPath,
  changesPath,
  outPath,
  facts,
  builtOn,
}: BuildOptions): Promise<BuildReport> => {
  const { rows, faults: malformed } = parseTable(await readText(csvPath))
  const counts = countByType(rows.map(row => fieldOf(row, 'type')))
  const refused = (faults: readonly Fault[]): BuildReport => ({
    counts,
    aliases: 0,
    formerIds: 0,
    faults,
    keptUnpublished: [],
  })

  const faults = [...malformed, ...check(rows, facts.bounds)]
  if (faults.length > 0) return refused(faults)
  const byId = new Map<string, Location>(rows.map(row => [String(fieldOf(row, 'id')), locationOf(row)]))
  const ofAliases = aliasesPath === undefined ? noExtras : parseAliases(await readText(aliasesPath), byId)
  const ofChanges = changesPath === undefined ? noExtras : parseChanges(await readText(changesPath), byId)
  const extraFaults = [...ofAliases.faults, ...ofChanges.faults]
  if (extraFaults.length > 0) return refused(extraFaults)
  const [aliases, formerIds] = [ofAliases.byId, ofChanges.byId]

  let report = refused([])
  await editExclusively(outPath, async () => {
    const unpublished = await unpublishedIn(outPath)
    const idOf = (row: Row): string => String(fieldOf(row, 'id'))
    // A place stays unpublished when its id changes.
    const wasUnpublished = (id: string): boolean =>
      unpublished.has(id) || (formerIds.get(id) ?? []).some(former => unpublished.has(former.id))
    const keeps = (row: Row) => fieldOf(row, 'published') === undefined && wasUnpublished(idOf(row))
    const kept = rows.filter(keeps).map(idOf)
    const place = (row: Row): Location => {
      const location = locationOf(row)
      return Object.freeze({
        ...location,
        aliases: aliases.get(location.id) ?? location.aliases,
        formerIds: formerIds.get(location.id) ?? location.formerIds,
        published: location.published && !keeps(row),
      })
    }
    const text = formatSnapshot(composeSnapshot({ ...facts, built: builtOn }, rows.map(place)))

    // Validates the whole text as a reader does: the facts and the date come from no table.
    const inspected = inspectSnapshot(text)
    report = inspected.snapshot
      ? {
          counts,
          aliases: sizeOf(aliases),
          formerIds: sizeOf(formerIds),
          faults: [],
          keptUnpublished: kept.toSorted(),
        }
      : refused(inspected.faults)
    return inspected.snapshot ? text : undefined
  })
  return report
}

/**
 * The facts of places that no table has, from a file of their own or from the snapshot that is configured; before its first build
 * from that of the product.
 * @param file a JSON file with nothing else
 * @param configured the path of the configured snapshot, null for the product's own
 * @throws InputError for an invalid file
 */
export const factsFor = async (file: string | undefined, configured: string | null): Promise<Facts> => {
  if (file === undefined) {
    const path = catalogueFile(configured)
    const { provenance } = await readSnapshot(existsSync(path) ? path : catalogueFile(null))
    const { title, bounds, sources } = provenance
    return { title, bounds, sources }
  }
  const facts = parsed(await readText(file), file)
  const faults = factsFaults(facts)
  if (faults.length > 0) throw new InputError(faults.map(fault => `${file}: ${faultLine(fault)}`))
  return facts as Facts
}

const parsed = (text: string, file: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new InputError(`${file}: not JSON: ${messageOf(cause)}`, { cause })
  }
}
