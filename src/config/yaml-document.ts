// Parses YAML within bounds, whatever the text: its tokens, depth and aliases are counted, and every alias is resolved once.
// The library searches the whole document for each alias, and expands aliases of aliases without an end. yaml-file.ts reads
// settings from what comes of it.

import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isNode,
  isPair,
  Lexer,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml'
import { safeText } from '../common/outside-text.ts'

/** The file of defaults has 1,800 tokens, a depth of 5 and no alias. */
const maxTokens = 50_000
const maxDepth = 64
const maxAliases = 200

export type YamlDocument = {
  readonly document: Document
  /** Line and column from 1 of an offset in the text. */
  readonly placeAt: (offset: number) => { readonly line: number; readonly column: number }
  /** A node as it is, or what an alias stands for; undefined for an alias of no anchor. */
  readonly resolved: (node: unknown) => unknown
}

/** Why a text is no such document, and where. */
export type YamlFault = { readonly reason: string; readonly line?: number; readonly column?: number }

/** The one document of a text, or its first fault. */
export const parseYaml = (text: string): YamlDocument | YamlFault => {
  if (hasMoreTokens(text)) return { reason: `it has more than ${maxTokens.toLocaleString('en-US')} tokens` }
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: true,
    // A list as a key is a fault with a sentence of its own; Node would warn of it beside that.
    logLevel: 'error',
  })
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const broken = document.errors[0] ?? document.warnings[0]
  if (broken) return { reason: reasonOf(broken), ...placeAt(broken.pos[0]) }
  const found = aliasesIn(document.contents)
  if ('reason' in found) return { reason: found.reason, ...(found.at?.range && placeAt(found.at.range[0])) }
  const { targets } = found
  return { document, placeAt, resolved: node => (isAlias(node) ? targets.get(node) : node) }
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

type Aliases =
  | { readonly targets: ReadonlyMap<Alias, Node> }
  | { readonly reason: string; readonly at?: Node }

// In the order of the text: an alias stands for the last anchor of its name that stands before it.
const aliasesIn = (contents: unknown): Aliases => {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  let count = 0
  const left: (readonly [node: unknown, depth: number])[] = [[contents, 0]]
  for (let next = left.pop(); next; next = left.pop()) {
    const [node, depth] = next
    if (isPair(node)) left.push([node.value, depth], [node.key, depth])
    else if (isNode(node)) {
      if (depth > maxDepth) return { reason: tooDeep, at: node }
      if (isAlias(node)) {
        count += 1
        if (count > maxAliases) return { reason: `it has more than ${maxAliases} aliases`, at: node }
        const target = anchors.get(node.source)
        if (target) targets.set(node, target)
        continue
      }
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
      if (isCollection(node)) for (const item of node.items.toReversed()) left.push([item, depth + 1])
    }
  }
  return { targets }
}
