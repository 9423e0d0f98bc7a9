// The settings of earlier versions that no longer exist, or have another name. A configuration that still names one starts.

import type { Place, Source, Tree } from './faults.ts'
import { type Path, printPath } from './tree.ts'
import { put, valueAt } from './values.ts'

/** A removed setting that a source still gives. */
export type RemovedSetting = {
  readonly path: string
  readonly at: Place
  readonly value: unknown
  /** The setting that has its value now; undefined where it is ignored. */
  readonly renamedTo: string | undefined
}

/** By path; `*` stands for each item of a list. */
export const removedSettings: readonly string[] = [
  'server.requestTimeout',
  'provider.name',
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

const oldShare = 'log.accessShare'
const access = ['log', 'access']

const isShare = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1

/** Takes the removed settings out of what a source gives, and returns them. */
export const takeRemoved = ({ tree, placeOf }: Source): RemovedSetting[] =>
  removedSettings.flatMap(removed =>
    pathsIn(tree, removed.split('.')).map(path => {
      const keys = path.map(String)
      const value = valueAt(tree as Tree, keys)
      const at = placeOf(path, true)
      put(tree as Tree, keys, undefined)
      const renamedTo = removed === oldShare && isShare(value) ? access.join('.') : undefined
      return { path: printPath(path), at, value, renamedTo }
    }),
  )

/** Gives `log.access` the share of its predecessor, unless it turns the lines off or has a share already. */
export const keepAccessShare = (
  given: Tree,
  origins: Map<string, Place>,
  removed: readonly RemovedSetting[],
): void => {
  const share = removed.findLast(({ renamedTo }) => renamedTo !== undefined)
  const before = valueAt(given, access)
  if (share === undefined || (before !== undefined && before !== true)) return
  put(given, access, share.value)
  origins.set(access.join('.'), share.at)
}
