// The facts of places that no table has, for a build: title, bounds and sources, from a file of their own or from the snapshot
// that is configured; before its first build from that of the product.

import { existsSync } from 'node:fs'
import { InputError, messageOf } from '../common/errors.ts'
import { catalogueFile } from './catalogue-file.ts'
import { faultLine } from './check.ts'
import type { Facts } from './snapshot.ts'
import { factsFaults } from './snapshot-form.ts'
import { readSnapshot, readText } from './snapshot-reader.ts'

/**
 * @param file a JSON file with nothing else
 * @param configured the path of the configured snapshot, null for the product's own
 * @throws InputError for a file that is at fault
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
