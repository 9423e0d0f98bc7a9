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

/** A share from 0 to 1; undefined for anything else. A variable gives it as text. */
const shareIn = (value: unknown): number | undefined => {
  // Number would read an empty text, false and [] as 0, which ends the log.
  const share = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof share === 'number' && share >= 0 && share <= 1 ? share : undefined
}

/** Takes the removed settings out of what a source gives, and returns them. */
export const takeRemoved = ({ tree, placeOf }: Source): RemovedSetting[] =>
  removedSettings.flatMap(removed =>
    pathsIn(tree, removed.split('.')).map(path => {
      const keys = path.map(String)
      const value = valueAt(tree as Tree, keys)
      const found = {
        path: printPath(path),
        at: placeOf(path, true),
        value,
        renamedTo: removed === 'log.accessShare' && shareIn(value) !== undefined ? 'log.access' : undefined,
      }
      put(tree as Tree, keys, undefined)
      return found
    }),
  )

/** Gives the setting that replaces `log.accessShare` its share, unless that setting turns the lines off or has a share already. */
export const keepAccessShare = (given: Tree, removed: readonly RemovedSetting[]): void => {
  const share = shareIn(removed.findLast(({ renamedTo }) => renamedTo === 'log.access')?.value)
  const path = ['log', 'access']
  const access = valueAt(given, path)
  if (share !== undefined && (access === undefined || access === true)) put(given, path, share)
}
