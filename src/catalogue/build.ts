// From a table of places to a snapshot of them. A table with any fault changes nothing, and a rebuild does not publish
// again what somebody has unpublished. What a fault is, is for check.ts.

import { InputError } from '../errors.ts'
import { check, type Fault } from './check.ts'
import { editExclusively } from './exclusive-edit.ts'
import {
  type Bounds,
  type Counts,
  cellOf,
  countByType,
  type Location,
  locationOf,
  type Row,
} from './location.ts'
import { composeSnapshot, formatSnapshot, type Source } from './snapshot.ts'
import { inspectSnapshot } from './snapshot-reader.ts'
import { parseTable } from './table.ts'
import { readText, readTextIfPresent } from './text-file.ts'

/** What to build from what; `builtOn` is the date the snapshot states, YYYY-MM-DD. */
export type BuildOptions = Readonly<{
  csvPath: string
  outPath: string
  bounds: Bounds
  sources: readonly Source[]
  title: string
  builtOn: string
}>

/** What a build did: with any fault nothing was written. `keptUnpublished` are ids, in order. */
export type BuildReport = Readonly<{
  counts: Counts
  faults: readonly Fault[]
  keptUnpublished: readonly string[]
}>

const unpublishedIn = async (path: string): Promise<ReadonlySet<string>> => {
  const text = await readTextIfPresent(path)
  if (text === undefined) return new Set()
  // A file with faults still says what is unpublished, and a rebuild is how its faults are mended.
  try {
    const { locations } = JSON.parse(text) as { locations: { id: string; published?: boolean }[] }
    return new Set(locations.filter(({ published }) => published === false).map(({ id }) => id))
  } catch (thrown) {
    throw new InputError(
      `${path} is there but no snapshot of places, so it is not known what is unpublished in it; ` +
        'move it away or give another file to write',
      { cause: thrown },
    )
  }
}

/** Builds the snapshot at `outPath`; InputError when a file cannot be read or written. */
export const buildSnapshot = async (options: BuildOptions): Promise<BuildReport> => {
  const { csvPath, outPath, bounds, sources, title, builtOn } = options
  const { rows, faults: malformed } = parseTable(await readText(csvPath))
  const counts = countByType(rows.map(row => cellOf(row, 'type')))
  const refused = (faults: readonly Fault[]): BuildReport => ({ counts, faults, keptUnpublished: [] })

  const faults = [...malformed, ...check(rows, bounds)]
  if (faults.length > 0) return refused(faults)

  let report = refused([])
  await editExclusively(outPath, async () => {
    const unpublished = await unpublishedIn(outPath)
    const keeps = (row: Row) =>
      cellOf(row, 'published') === undefined && unpublished.has(String(cellOf(row, 'id')))
    const kept = rows.filter(keeps).map(row => String(cellOf(row, 'id')))
    const place = (row: Row): Location =>
      keeps(row) ? Object.freeze({ ...locationOf(row), published: false }) : locationOf(row)
    const text = formatSnapshot(composeSnapshot({ title, sources, built: builtOn }, rows.map(place)))

    // Read as a reader will: it also covers the title, the sources and the date, which no table holds.
    const inspected = inspectSnapshot(text, bounds)
    report = inspected.snapshot
      ? { counts, faults: [], keptUnpublished: kept.toSorted() }
      : refused(inspected.faults)
    return inspected.snapshot ? text : undefined
  })
  return report
}
