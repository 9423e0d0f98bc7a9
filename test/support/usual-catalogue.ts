// The catalogue of gateways in tests: of the product's places the divisions, the districts, and all of Dhaka and Barguna.
// Reading all of the product's takes a fifth of a usual test; a test about them gives the setting `catalogue.path` itself.

import { hash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The file that ships with the product. */
export const wholeCatalogue: string = fileURLToPath(new URL('../../locations.json', import.meta.url))

const folder = fileURLToPath(new URL('../../node_modules/.cache/tests/', import.meta.url))
const wholeDistricts = ['3026', '1004']

const write = async (text: string, path: string): Promise<void> => {
  // Once in a while, so that not every test loads them.
  const { inspectSnapshot } = await import('../../src/catalogue/snapshot-reader.ts')
  const { composeSnapshot, formatSnapshot } = await import('../../src/catalogue/snapshot.ts')
  const { snapshot } = inspectSnapshot(text)
  if (!snapshot) throw new Error(`${wholeCatalogue} has faults; "abohawa catalogue check" shows them`)
  const places = snapshot.locations.filter(
    ({ id, type }) =>
      type === 'division' || type === 'district' || wholeDistricts.some(district => id.startsWith(district)),
  )
  mkdirSync(folder, { recursive: true })
  // Other test files may write it at the same time, and none may read a part of it.
  const own = `${path}.${randomUUID()}`
  writeFileSync(own, formatSnapshot(composeSnapshot(snapshot.provenance, places)))
  renameSync(own, path)
}

/** The path of the small catalogue, which is written where it is not there yet. */
export const smallCatalogue = async (): Promise<string> => {
  const text = readFileSync(wholeCatalogue)
  const versions = [text, readFileSync(import.meta.filename)].map(each => hash('sha1', each))
  const path = `${folder}places-${hash('sha1', versions.join())}.json`
  if (!existsSync(path)) await write(text.toString(), path)
  return path
}

/** Its path. Benchmarks start gateways by the same helpers and have the whole one: tap sets TAP for its tests. */
export const usualCatalogue: string = process.env.TAP ? await smallCatalogue() : wholeCatalogue

type Counts = Readonly<Record<'division' | 'district' | 'upazila' | 'union' | 'total', number>>

/** Places of the product, of each level and in total, so that no test repeats the figure. */
export const productCounts = (): Counts => JSON.parse(readFileSync(wholeCatalogue, 'utf8')).provenance.counts
