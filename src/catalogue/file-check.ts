// Finds every fault of a file of places: a table if its name ends in .csv, else a snapshot. For people who repair files; the
// gateway uses snapshot-reader.ts.

import { check, type Fault } from './check.ts'
import { type Bounds, type Counts, countByType, fieldOf } from './location-schema.ts'
import { inspectSnapshot } from './snapshot-reader.ts'
import { parseTable } from './table.ts'
import { readText } from './text-file.ts'

/**
 * Every fault of a file and how many places of each level it has; InputError when it cannot be read.
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
