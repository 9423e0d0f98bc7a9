// Reads config/default.yaml: the default and the comment of each setting. The comments are the only description of a setting;
// json-schema.ts uses them for editors.

import { readFileSync } from 'node:fs'
import { isMap, isNode, isScalar, parseDocument } from 'yaml'
import { DEFAULT_FILE } from './default-file.ts'

/** A setting or section in the file of defaults; `below` holds the parts of a section. */
export type Entry = { value: unknown; comment?: string; below: Map<string, Entry> }

// The last paragraph alone: what stands further up is about the file or about a group of settings.
const lastParagraph = (comment: string): string =>
  (comment.split(/\n\s*\n/).at(-1) ?? '').replace(/\s+/g, ' ').trim()

const entriesOf = (map: unknown): Map<string, Entry> => {
  const entries = new Map<string, Entry>()
  if (!isMap(map)) return entries
  for (const [index, { key, value }] of map.items.entries()) {
    if (!isScalar(key)) continue
    // YAML gives the comment above the first key of a map to the map.
    const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined)
    entries.set(String(key.value), {
      value: isNode(value) ? value.toJSON() : value,
      below: entriesOf(value),
      ...(comment && { comment: lastParagraph(comment) }),
    })
  }
  return entries
}

/** The contents of the file of defaults, by section. */
export const readDefaults = (): Map<string, Entry> =>
  entriesOf(parseDocument(readFileSync(DEFAULT_FILE, 'utf8')).contents)
