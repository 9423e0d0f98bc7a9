// The defaults without YAML: config/schema.json has them too, with the checksum of the config/default.yaml that they are from.
// Where that file was changed since, it is read itself. Their places are looked up when somebody asks.

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { DEFAULT_FILE, DEFAULT_NAME } from './default-file.ts'
import { type Assignment, isFault, type Place, type Reading } from './faults.ts'
import { frozen } from './frozen.ts'
import { printPath, settings } from './tree.ts'
import { yamlFiles } from './yaml.ts'

const SCHEMA_FILE = new URL('../../config/schema.json', import.meta.url)

type Part = { readonly properties?: Readonly<Record<string, Part>>; readonly default?: unknown }

/** What the schema says of the file that its defaults are from. */
export const defaultsChecksum = (): string =>
  `The defaults are those of ${DEFAULT_NAME} with SHA-256 ${hash('sha256', readFileSync(DEFAULT_FILE))}.`

const valuesInSchema = (): (readonly [path: readonly string[], value: unknown])[] | undefined => {
  try {
    const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Part & { readonly $comment?: string }
    if (schema.$comment !== defaultsChecksum()) return undefined
    return settings.flatMap(({ path, named }) => {
      const value = path.reduce<Part | undefined>((part, key) => part?.properties?.[key], schema)?.default
      return named
        ? Object.entries(value as object).map(([name, each]) => [[...path, name], each] as const)
        : [[path, value] as const]
    })
  } catch {
    return undefined
  }
}

let readOnce: Reading | undefined

/** What default.yaml gives. A part of the program: read once, unless it has a fault. */
const readFile = (): Reading => {
  if (readOnce) return readOnce
  const { reading } = yamlFiles().readYamlFile(DEFAULT_FILE, DEFAULT_NAME)
  const assignments = reading.filter((part): part is Assignment => !isFault(part))
  if (assignments.length < reading.length) return reading
  // With the place of the whole value, and without the document that places within it are looked up in.
  readOnce = assignments.map(({ path, value, at }) => {
    const place = at([])
    return { path, value: frozen(value), at: () => place }
  })
  return readOnce
}

const placeOf = (path: readonly string[]): Place => {
  const found = readFile().find(part => part.path && printPath(part.path) === printPath(path))
  return found && !isFault(found) ? found.at([]) : { file: DEFAULT_NAME }
}

let kept: Reading | undefined

/** The assignments of default.yaml, or its faults. */
export const readDefaultValues = (): Reading => {
  kept ??= valuesInSchema()?.map(([path, value]) => ({ path, value: frozen(value), at: () => placeOf(path) }))
  return kept ?? readFile()
}
