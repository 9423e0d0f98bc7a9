// Reads a YAML config file: each value with its line and column. Refuses anything but one map of known names, each given once.
// Validates no values and merges nothing; load.ts does.

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
} from 'yaml'
import type * as z from 'zod'
import { messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import { type Assignment, type Fault, type Reading, unknownName, unusableName } from './faults.ts'
import { configSchema } from './schema.ts'
import { namedIn, type Path, partsOf, printPath, schemaAt } from './tree.ts'

const keyOf = ({ key }: Pair): string => String(isScalar(key) ? key.value : key)

const stepOf = (parent: unknown, child: unknown): Path =>
  isPair(parent) ? [keyOf(parent)] : isSeq(parent) ? [parent.items.indexOf(child)] : []

/** What the text of a config file says; `name` is what its operator calls the file. */
const readYaml = (name: string, text: string): Reading => {
  const reading: Array<Assignment | Fault> = []
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })

  const refuse = (sentence: string) => reading.push({ sentence })
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `${name}:${line}:${col}`
  }
  const placeOf = (node: unknown): string => (isNode(node) && node.range ? place(node.range[0]) : name)

  const refuseRepeats = (): unknown =>
    visit(document, {
      Map(_, map, ancestors) {
        const above = [...ancestors, map].flatMap((node, index, all) => stepOf(node, all[index + 1]))
        const first = new Map<string, Pair>()
        for (const pair of map.items) {
          const earlier = first.get(keyOf(pair))
          if (!earlier) first.set(keyOf(pair), pair)
          else
            refuse(
              `${placeOf(pair.key)}: ${printPath([...above, keyOf(pair)])} is given twice in this file, ` +
                `first at ${placeOf(earlier.key)}; keep one of the two`,
            )
        }
      },
    })

  const resolved = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node)

  const partOf = (node: unknown, [key, ...rest]: Path): unknown => {
    const part = key !== undefined && isCollection(node) ? resolved(node.get(key, true)) : undefined
    return part === undefined ? node : partOf(part, rest)
  }

  const assign = (path: readonly string[], node: Node): void => {
    const at = (inner: Path) => placeOf(partOf(node, inner))
    try {
      reading.push({ path, value: node.toJS(document), at })
    } catch (thrown) {
      refuse(`${at([])}: ${printPath(path)} cannot be used: ${messageOf(thrown)}`)
    }
  }

  const read = (node: unknown, schema: z.core.$ZodType, path: readonly string[]): void => {
    const parts = partsOf(schema)
    const named = namedIn(schema)
    // A section whose settings are all commented out is null to YAML.
    if ((parts || named) && isScalar(node) && node.value === null) return
    if (!isMap(node) || !(parts || named)) return void (isNode(node) && assign(path, node))
    for (const pair of node.items) {
      const below = [...path, keyOf(pair)]
      const part = schemaAt([keyOf(pair)], schema)
      const refused = part ? unusableName(placeOf(pair.key), below) : unknownName(placeOf(pair.key), below)
      const value = resolved(pair.value)
      if (refused !== undefined) refuse(refused)
      else if (!isNode(value))
        refuse(`${placeOf(pair.value)}: ${printPath(below)} refers to an anchor that is not there`)
      else if (part) read(value, part, below)
    }
  }

  const broken = document.errors[0] ?? document.warnings[0]
  if (broken) {
    const why =
      broken.code === 'MULTIPLE_DOCS' ? 'it holds more than one document' : safeText(broken.message, 300)
    refuse(`${place(broken.pos[0])}: this is not a YAML config file: ${why}`)
    return reading
  }
  refuseRepeats()
  read(document.contents, configSchema, [])
  return reading
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'access is denied',
}

/** What a config file says; one that is not there or cannot be read is a fault like any other. */
export const readYamlFile = (file: string | URL, name = String(file)): Reading => {
  try {
    return readYaml(name, readFileSync(file, 'utf8'))
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
    const sentence = `${name}: the config file cannot be read: ${REASONS[code] ?? messageOf(thrown)}`
    return [{ sentence }]
  }
}
