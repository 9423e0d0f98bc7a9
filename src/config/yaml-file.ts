// Reads a YAML config file: each value with its line and column, merge keys resolved. Refuses anything but one map of known
// names, each given once; names that begin with `x-` are left alone. Validates no values and merges no files; load.ts does.

import { readFileSync } from 'node:fs'
import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import type * as z from 'zod'
import { messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import {
  type Assignment,
  type Fault,
  type Place,
  printPlace,
  type Reading,
  unknownName,
  unreadable,
  unusableName,
} from './faults.ts'
import { configSchema } from './schema.ts'
import { namedIn, type Path, partsOf, printPath, schemaAt } from './tree.ts'

const MERGE = '<<'
// Names that are the operator's own, as in Compose: they hold what is merged elsewhere.
const EXTENSION = 'x-'

const keyOf = ({ key }: Pair): string => {
  const name = isScalar(key) ? key.value : key
  // The library reads the key `<<` as a symbol.
  return typeof name === 'symbol' ? (name.description ?? '') : String(name)
}

const stepOf = (parent: unknown, child: unknown): Path =>
  isPair(parent) ? [keyOf(parent)] : isSeq(parent) ? [parent.items.indexOf(child)] : []

/** What the text of a config file says; `name` is what its operator calls the file. */
const readYaml = (name: string, text: string): Reading => {
  const reading: Array<Assignment | Fault> = []
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: true,
  })

  const refuse = (at: Place, reason: string, path?: Path) =>
    reading.push({ at, reason, ...(path && { path }) })
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file: name, line, column: col }
  }
  const placeOf = (node: unknown): Place =>
    isNode(node) && node.range ? place(node.range[0]) : { file: name }

  const refuseRepeats = (): unknown =>
    visit(document, {
      Map(_, map, ancestors) {
        const above = [...ancestors, map].flatMap((node, index, all) => stepOf(node, all[index + 1]))
        const first = new Map<string, Pair>()
        for (const pair of map.items) {
          const earlier = first.get(keyOf(pair))
          if (!earlier) first.set(keyOf(pair), pair)
          else {
            const path = [...above, keyOf(pair)]
            const first = printPlace(placeOf(earlier.key))
            refuse(
              placeOf(pair.key),
              `${printPath(path)} is given twice in this file, first at ${first}; keep one of the two`,
              path,
            )
          }
        }
      },
    })

  const resolved = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node)

  const partOf = (node: unknown, [key, ...rest]: Path): unknown => {
    const part = key !== undefined && isCollection(node) ? resolved(node.get(key, true)) : undefined
    return part === undefined ? node : partOf(part, rest)
  }

  /** The pairs of a map by their keys, those of merged maps (`<<`) included; its own win, then those merged first. */
  const pairsOf = (map: YAMLMap, path: Path, above: readonly unknown[] = []): Map<string, Pair> => {
    const pairs = new Map<string, Pair>()
    const mergeKeys = map.items.filter(pair => keyOf(pair) === MERGE)
    for (const pair of map.items) if (keyOf(pair) !== MERGE) pairs.set(keyOf(pair), pair)
    for (const { value } of mergeKeys) {
      const given = resolved(value)
      for (const source of isSeq(given) ? given.items.map(resolved) : [given])
        if (!isMap(source) || source === map || above.includes(source))
          refuse(
            placeOf(value),
            `${printPath([...path, MERGE])} must be an alias of a map, or a list of such aliases`,
          )
        else
          for (const [key, pair] of pairsOf(source, path, [...above, map]))
            if (!pairs.has(key)) pairs.set(key, pair)
    }
    return pairs
  }

  const assign = (path: readonly string[], node: Node): void => {
    const at = (inner: Path) => placeOf(partOf(node, inner))
    try {
      reading.push({ path, value: node.toJS(document), at })
    } catch (thrown) {
      refuse(at([]), `${printPath(path)} cannot be used: ${messageOf(thrown)}`, path)
    }
  }

  const read = (node: unknown, schema: z.core.$ZodType, path: readonly string[]): void => {
    const parts = partsOf(schema)
    const named = namedIn(schema)
    // A section whose settings are all commented out is null to YAML.
    if ((parts || named) && isScalar(node) && node.value === null) return
    if (!isMap(node) || !(parts || named)) return void (isNode(node) && assign(path, node))
    for (const [key, pair] of pairsOf(node, path)) {
      if (parts && key.startsWith(EXTENSION)) continue
      const below = [...path, key]
      const part = schemaAt([key], schema)
      const refused = part ? unusableName(below) : unknownName(below)
      const value = resolved(pair.value)
      if (refused !== undefined) refuse(placeOf(pair.key), refused, below)
      else if (!isNode(value))
        refuse(placeOf(pair.value), `${printPath(below)} refers to an anchor that is not there`, below)
      else if (part) read(value, part, below)
    }
  }

  const broken = document.errors[0] ?? document.warnings[0]
  if (broken) {
    const why =
      broken.code === 'MULTIPLE_DOCS' ? 'it holds more than one document' : safeText(broken.message, 300)
    refuse(place(broken.pos[0]), `this is not a YAML config file: ${why}`)
    return reading
  }
  refuseRepeats()
  read(document.contents, configSchema, [])
  return reading
}

/** What a config file says; one that is not there or cannot be read is a fault like any other. */
export const readYamlFile = (file: string | URL, name = String(file)): Reading => {
  try {
    return readYaml(name, readFileSync(file, 'utf8'))
  } catch (thrown) {
    return [{ at: { file: name }, reason: `the config file cannot be read: ${unreadable(thrown)}` }]
  }
}
