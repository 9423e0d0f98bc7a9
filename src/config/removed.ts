// The settings of earlier versions that no longer exist. A configuration that still names one starts without it.

import type { Place, Source, Tree } from './faults.ts'
import { type Path, printPath } from './tree.ts'
import { put } from './values.ts'

/** A removed setting that a source still gives. */
export type RemovedSetting = { readonly path: string; readonly at: Place }

/** By path; `*` stands for each item of a list. */
export const removedSettings: readonly string[] = [
  'server.requestTimeout',
  'provider.name',
  'provider.protocol',
  'provider.fallbacks.*.protocol',
  'provider.budget.outageShare',
  'provider.fallbacks.*.budget.outageShare',
  'quota.testPerDay',
  'log.accessShare',
]

const pathsIn = (value: unknown, [key, ...rest]: readonly string[], above: Path = []): Path[] => {
  if (key === undefined) return [above]
  if (key === '*')
    return Array.isArray(value) ? value.flatMap((item, i) => pathsIn(item, rest, [...above, i])) : []
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? pathsIn((value as Tree)[key], rest, [...above, key])
    : []
}

/** Takes the removed settings out of what a source gives, and returns them. */
export const takeRemoved = ({ tree, placeOf }: Source): RemovedSetting[] =>
  removedSettings.flatMap(removed =>
    pathsIn(tree, removed.split('.')).map(path => {
      const found = { path: printPath(path), at: placeOf(path, true) }
      put(tree as Tree, path.map(String), undefined)
      return found
    }),
  )
