// Reads a YAML config file: each value with its line and column, merge keys resolved. Refuses anything but one map of known
// names, each given once; names that begin with `x-` are left alone. Validates no values and merges no files; load.ts does.

import {
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml'
import type * as z from 'zod'
import { messageOf } from '../common/errors.ts'
import { maxFileBytes, readTextFileSync } from '../common/regular-file.ts'
import {
  type Assignment,
  type Fault,
  maxFaults,
  type Place,
  printPlace,
  type Reading,
  unknownName,
  unreadable,
  unusableName,
} from './faults.ts'
import { configSchema } from './schema.ts'
import { namedIn, type Path, partsOf, printPath, schemaAt } from './tree.ts'
import { parseYaml } from './yaml-document.ts'

const MERGE = '<<'
// Names that are the operator's own, as in Compose: they hold what is merged elsewhere.
const EXTENSION = 'x-'

const maxMerged = 20_000
const longestKey = 1_000
const keys = new WeakMap<Pair, string>()

const keyOf = (pair: Pair): string => {
  const known = keys.get(pair)
  if (known !== undefined) return known
  const name = isScalar(pair.key) ? pair.key.value : pair.key
  // The library reads the key `<<` as a symbol.
  const key = typeof name === 'symbol' ? (name.description ?? '') : String(name).slice(0, longestKey)
  keys.set(pair, key)
  return key
}

const stepOf = (parent: unknown, child: unknown): Path =>
  isPair(parent) ? [keyOf(parent)] : isSeq(parent) ? [parent.items.indexOf(child)] : []

/** Reads the text of a config file; `name` is the operator's name of the file. */
const readYaml = (name: string, text: string): Reading => {
  const parsed = parseYaml(text)
  if ('reason' in parsed) {
    const { reason, ...at } = parsed
    return [{ at: { file: name, ...at }, reason: `this is not a YAML config file: ${reason}` }]
  }
  const { document, placeAt, resolved } = parsed
  const reading: Array<Assignment | Fault> = []
  let faults = 0
  // More than are named cost time and help nobody.
  const isFull = (): boolean => faults > maxFaults
  const refuse = (at: Place, reason: string, path?: Path): void => {
    faults += 1
    reading.push({ at, reason, ...(path && { path }) })
  }
  const placeOf = (node: unknown): Place => ({
    file: name,
    ...(isNode(node) && node.range && placeAt(node.range[0])),
  })

  const refuseRepeats = (): unknown =>
    visit(document, {
      Map(_, map, ancestors) {
        const first = new Map<string, Pair>()
        for (const pair of map.items) {
          const earlier = first.get(keyOf(pair))
          if (!earlier) first.set(keyOf(pair), pair)
          else if (isFull()) return visit.BREAK
          else {
            const above = [...ancestors, map].flatMap((node, index, all) => stepOf(node, all[index + 1]))
            const path = [...above, keyOf(pair)]
            const first = printPlace(placeOf(earlier.key))
            refuse(
              placeOf(pair.key),
              `${printPath(path)} is given twice in this file, first at ${first}; keep one of the two`,
              path,
            )
          }
        }
        return undefined
      },
    })

  const partOf = (node: unknown, [key, ...rest]: Path): unknown => {
    const part = key !== undefined && isCollection(node) ? resolved(node.get(key, true)) : undefined
    return part === undefined ? node : partOf(part, rest)
  }

  const pairsIn = new Map<YAMLMap, Map<string, Pair>>()
  const merging = new Set<YAMLMap>()
  let merged = 0

  /** The pairs of a map by their keys, those of merged maps (`<<`) included; its own win, then those merged first. */
  const pairsOf = (map: YAMLMap, path: Path): Map<string, Pair> => {
    // Once for each map: a map that merges others twice, which do the same, would otherwise double the work at each step.
    const known = pairsIn.get(map)
    if (known) return known
    const pairs = new Map<string, Pair>()
    pairsIn.set(map, pairs)
    merging.add(map)
    const mergeKeys = map.items.filter(pair => keyOf(pair) === MERGE)
    for (const pair of map.items) if (keyOf(pair) !== MERGE) pairs.set(keyOf(pair), pair)
    for (const { value } of mergeKeys) {
      const given = resolved(value)
      for (const source of isSeq(given) ? given.items.map(resolved) : [given])
        if (!isMap(source) || merging.has(source))
          refuse(
            placeOf(value),
            `${printPath([...path, MERGE])} must be an alias of a map, or a list of such aliases`,
          )
        else
          for (const [key, pair] of pairsOf(source, path)) {
            merged += 1
            if (merged <= maxMerged && !pairs.has(key)) pairs.set(key, pair)
          }
    }
    merging.delete(map)
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
      if (isFull()) return
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

  refuseRepeats()
  read(document.contents, configSchema, [])
  if (merged > maxMerged)
    refuse(
      { file: name },
      `its merge keys (<<) repeat more than ${maxMerged.toLocaleString('en-US')} settings`,
    )
  return reading
}

/** Reads a config file; a missing or unreadable file is a fault like any other. */
export const readYamlFile = (file: string): Reading => {
  try {
    return readYaml(file, readTextFileSync(file, maxFileBytes.config))
  } catch (thrown) {
    return [{ at: { file }, reason: `the config file cannot be read: ${unreadable(thrown)}` }]
  }
}
