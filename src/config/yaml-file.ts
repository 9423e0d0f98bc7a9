// Reads a YAML config file within bounds, whatever is in it: each value with its line and column, merge keys resolved, each name
// once. Names that begin with `x-` are left alone. Validates no values and merges no files; load.ts does.

import {
  type Alias,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type * as z from 'zod'
import { safeText } from '../common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from '../common/regular-file.ts'
import {
  type Fault,
  maxFaults,
  type Place,
  printPlace,
  type Source,
  type Tree,
  unknownName,
  unreadable,
} from './faults.ts'
import { configSchema } from './schema.ts'
import { itemOf, namedIn, type Path, partsOf, printPath, schemaAt } from './tree.ts'

/** The file of defaults has 1,800. */
const maxTokens = 50_000
const maxDepth = 64
const maxAliases = 200
const maxMerged = 20_000
const longestKey = 1_000
const MERGE = '<<'
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

/** Reads the text of a config file; `file` is the operator's name of the file. */
const readYaml = (file: string, text: string): Source => {
  const lines = new LineCounter()
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file, line, column: col }
  }
  const notYaml = 'this is not a YAML config file'
  if (hasMoreTokens(text))
    return broken({ file }, `${notYaml}: it has more than ${maxTokens.toLocaleString('en-US')} tokens`)
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    // A list as a key is a fault with a sentence of its own; Node would warn of it beside that.
    logLevel: 'error',
  })
  const problem = document.errors[0] ?? document.warnings[0]
  if (problem) return broken(placeAt(problem.pos[0]), `${notYaml}: ${reasonOf(problem)}`)

  const faults: Fault[] = []
  const refuse = (node: unknown, path: Path, wrong: string): void => {
    // More than are named cost time and help nobody.
    if (faults.length <= maxFaults)
      faults.push({ at: placeOfNode(node), reason: `${printPath(path)} ${wrong}`, path })
  }
  const placeOfNode = (node: unknown): Place =>
    isNode(node) && node.range ? placeAt(node.range[0]) : { file }
  const targets = targetsIn(document.contents)
  if (!('get' in targets)) return broken(placeOfNode(targets[0]), `${notYaml}: ${targets[1]}`)
  const resolved = (node: unknown): unknown => (isAlias(node) ? targets.get(node) : node)
  const pairsIn = new Map<YAMLMap, Map<string, Pair>>()
  const merging = new Set<YAMLMap>()
  let merged = 0

  /** The pairs of a map by their keys, those of merged maps (`<<`) included; its own win, then those merged first. */
  const pairsOf = (map: YAMLMap, path: Path): Map<string, Pair> => {
    // Once for each map: a map that merges others twice, which do the same, would otherwise double the work at each step.
    const known = pairsIn.get(map)
    if (known) return known
    const own = new Map<string, Pair>()
    pairsIn.set(map, own)
    for (const pair of map.items) {
      const key = keyOf(pair)
      const first = own.get(key)
      if (!first) own.set(key, pair)
      else {
        const place = printPlace(placeOfNode(first.key))
        refuse(
          pair.key,
          [...path, key],
          `is given twice in this file, first at ${place}; keep one of the two`,
        )
      }
    }
    const value = own.get(MERGE)?.value
    own.delete(MERGE)
    if (value === undefined) return own
    const given = resolved(value)
    merging.add(map)
    for (const source of isSeq(given) ? given.items.map(resolved) : [given])
      if (!isMap(source) || merging.has(source))
        refuse(value, [...path, MERGE], 'must be an alias of a map, or a list of such aliases')
      else
        for (const [key, pair] of pairsOf(source, path)) {
          merged += 1
          if (merged <= maxMerged && !own.has(key)) own.set(key, pair)
        }
    merging.delete(map)
    return own
  }

  // The nodes by their paths.
  const names = new Map<string, unknown>()
  const values = new Map<string, unknown>()

  const read = (node: unknown, schema: z.core.$ZodType, path: Path): unknown => {
    values.set(JSON.stringify(path), node)
    const isSection = partsOf(schema) !== undefined || namedIn(schema) !== undefined
    // A section whose settings are all commented out is null to YAML.
    if (isSection && isEmpty(node)) return {}
    const item = itemOf(schema)
    if (item && partsOf(item) && isSeq(node)) return listOf(node, item, path)
    if (!isSection || !isMap(node)) return plain(node, path)
    const section: Tree = {}
    for (const [key, pair] of pairsOf(node, path)) {
      if (partsOf(schema) && key.startsWith(EXTENSION)) continue
      const below = [...path, key]
      names.set(JSON.stringify(below), pair.key)
      const part = schemaAt([key], schema)
      const value = resolved(pair.value)
      // The schema does not look at it, and as a property it would be none.
      if (key === '__proto__') {
        const unknown = { at: placeOfNode(pair.key), reason: unknownName(below), path: below }
        faults.push(unknown)
      } else if (value === undefined) refuse(pair.value, below, noAnchor)
      else section[key] = part ? read(value, part, below) : null
    }
    return section
  }

  /** The sections of a list. */
  const listOf = (node: YAMLSeq, item: z.core.$ZodType, path: Path): unknown[] =>
    node.items.map((one, i) => {
      const below = [...path, i]
      const value = resolved(one)
      if (value === undefined) refuse(one, below, noAnchor)
      return read(value ?? null, item, below)
    })

  /** The value of any other setting. None has a map, or a list in a list, so that what these hold is not looked at. */
  const plain = (node: unknown, path: Path): unknown => {
    if (!isSeq(node)) return isScalar(node) ? node.value : {}
    return node.items.flatMap((item, i) => {
      const value = resolved(item)
      values.set(JSON.stringify([...path, i]), item)
      if (value === undefined) refuse(item, [...path, i], noAnchor)
      return value === undefined ? [] : [isScalar(value) ? value.value : isSeq(value) ? [] : {}]
    })
  }

  const tree = read(document.contents, configSchema, [])
  if (merged > maxMerged) {
    const reason = `its merge keys (<<) repeat more than ${maxMerged.toLocaleString('en-US')} settings`
    faults.push({ at: { file }, reason })
  }
  const placeOf = (path: Path, isName = false): Place => {
    const node = (isName ? names : values).get(JSON.stringify(path))
    return node !== undefined || path.length === 0 ? placeOfNode(node) : placeOf(path.slice(0, -1))
  }
  return { tree, faults, placeOf }
}

const noAnchor = 'refers to an anchor that is not there'

const isEmpty = (node: unknown): boolean => node === null || (isScalar(node) && node.value === null)

const keyOf = ({ key }: Pair): string => {
  if (!isScalar(key)) return isAlias(key) ? `*${key.source}` : 'a list or a map'
  // With `%YAML 1.1` the library reads the key `<<` as a symbol.
  const { value } = key
  return typeof value === 'symbol' ? (value.description ?? '') : String(value).slice(0, longestKey)
}

const tooDeep = `it is nested more than ${maxDepth} levels deep`

const reasonOf = ({ code, message }: { readonly code: string; readonly message: string }): string => {
  if (code === 'MULTIPLE_DOCS') return 'it holds more than one document'
  return code === 'RESOURCE_EXHAUSTION' ? tooDeep : safeText(message, 300)
}

// Counted before anything is made of them: a token becomes a node of a hundred bytes.
const hasMoreTokens = (text: string): boolean => {
  let count = 0
  for (const _ of new Lexer().lex(text)) if (++count > maxTokens) return true
  return false
}

/**
 * What each alias stands for: the last anchor of its name that stands before it; or what is beyond a bound. The library would search
 * the document for each alias anew.
 */
const targetsIn = (contents: unknown): ReadonlyMap<Alias, Node | undefined> | readonly [Node, string] => {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node | undefined>()
  const left: (readonly [node: unknown, depth: number])[] = [[contents, 0]]
  for (let next = left.pop(); next; next = left.pop()) {
    const [node, depth] = next
    if (isPair(node)) left.push([node.value, depth], [node.key, depth])
    else if (isNode(node) && depth > maxDepth) return [node, tooDeep]
    else if (isAlias(node)) {
      targets.set(node, anchors.get(node.source))
      if (targets.size > maxAliases) return [node, `it has more than ${maxAliases} aliases`]
    } else if (isNode(node)) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
      if (isCollection(node)) for (const item of node.items.toReversed()) left.push([item, depth + 1])
    }
  }
  return targets
}
