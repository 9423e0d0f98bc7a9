// Reads a YAML config file, with the line and column of each value. Names that begin with `x-` are ignored.

import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Pair, parseDocument, visit } from 'yaml'
import type * as z from 'zod'
import { messageOf } from '../common/errors.ts'
import { safeText } from '../common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from '../common/regular-file.ts'
import { type Fault, type Place, type Source, unknownName, unreadable } from './faults.ts'
import { configSchema } from './schema.ts'
import { itemOf, namedIn, type Path, partsOf, schemaAt } from './tree.ts'

/** How often the anchors of a file may be repeated by its aliases, those within them included. */
const maxAliasCount = 200
// Names that are the operator's own, as in Compose: they hold what is merged elsewhere.
const EXTENSION = 'x-'

/** Reads a config file; a missing or unreadable file is a fault like any other. */
export const readYamlFile = (file: string): Source => {
  try {
    return readYaml(file, readTextFileSync(file, maxFileBytes.config))
  } catch (thrown) {
    return broken({ file }, `the config file can't be read: ${unreadable(thrown)}`)
  }
}

const broken = (at: Place, reason: string): Source => ({
  tree: {},
  faults: [{ at, reason }],
  placeOf: () => at,
})
const notYaml = (at: Place, reason: string): Source =>
  broken(at, `this is not a YAML config file: ${safeText(reason, 300)}`)

/** Reads the text of a config file; `file` is the operator's name of the file. */
const readYaml = (file: string, text: string): Source => {
  const lineCounter = new LineCounter()
  const placeAt = (offset: number): Place => {
    const { line, col } = lineCounter.linePos(offset)
    return { file, line, column: col }
  }
  const placeOfNode = (node: unknown): Place =>
    isNode(node) && node.range ? placeAt(node.range[0]) : { file }
  const document = parseDocument(text, { lineCounter, merge: true, prettyErrors: false, logLevel: 'error' })
  const problem = document.errors[0] ?? document.warnings[0]
  if (problem) return notYaml(placeAt(problem.pos[0]), reasonOf(problem))
  let unknownAlias: unknown
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document)) return undefined
      unknownAlias = alias
      return visit.BREAK
    },
  })
  if (unknownAlias) return notYaml(placeOfNode(unknownAlias), 'it refers to an anchor that is not there')
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount })
  } catch (error) {
    return notYaml(placeAt(0), messageOf(error))
  }

  const resolved = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node)
  /** The pair of a key in a map, or in a map that it merges. */
  const pairIn = (given: unknown, key: PropertyKey): Pair | undefined => {
    const map = resolved(given)
    if (!isMap(map)) return undefined
    const own = map.items.find(pair => keyOf(pair) === key)
    if (own) return own
    const merged = resolved(map.items.find(pair => keyOf(pair) === '<<')?.value)
    for (const source of isSeq(merged) ? merged.items : [merged]) {
      const found = pairIn(source, key)
      if (found) return found
    }
    return undefined
  }
  const placeOf = (path: Path, isName = false): Place => {
    let node: unknown = document.contents
    let found = node
    for (const [i, key] of path.entries()) {
      const list = resolved(node)
      const pair = pairIn(node, key)
      node = isSeq(list) ? list.items[Number(key)] : pair?.value
      const at = isName && i === path.length - 1 ? pair?.key : node
      if (!isNode(at)) break
      found = at
    }
    return placeOfNode(found)
  }
  const faults: Fault[] = []
  const unknown = (path: Path): void => {
    faults.push({ at: placeOf(path, true), reason: unknownName(path), path })
  }
  return { tree: settingsIn(value, configSchema, [], unknown), faults, placeOf }
}

/** A section without what is the operator's own. One whose settings are all commented out is null to YAML. */
const settingsIn = (
  value: unknown,
  schema: z.core.$ZodType,
  path: Path,
  unknown: (path: Path) => void,
): unknown => {
  const parts = partsOf(schema)
  if (value === null && (parts || namedIn(schema))) return {}
  const item = itemOf(schema)
  if (item && Array.isArray(value)) return value.map((one, i) => settingsIn(one, item, [...path, i], unknown))
  if ((!parts && !namedIn(schema)) || !isPlainMap(value)) return value
  const entries = Object.entries(value).flatMap(([key, below]): [string, unknown][] => {
    if (parts && key.startsWith(EXTENSION)) return []
    const part = schemaAt([key], schema)
    // The schema does not look at it.
    if (key === '__proto__') return unknown([...path, key]) ?? []
    return [[key, part ? settingsIn(below, part, [...path, key], unknown) : below]]
  })
  return Object.fromEntries(entries)
}

const isPlainMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

// The library reads the key `<<` as a symbol.
const keyOf = ({ key }: Pair): string | undefined => {
  if (!isScalar(key)) return undefined
  return typeof key.value === 'symbol' ? key.value.description : String(key.value)
}

const reasonOf = ({ code, message }: { readonly code: string; readonly message: string }): string =>
  code === 'MULTIPLE_DOCS' ? 'it holds more than one document' : message
