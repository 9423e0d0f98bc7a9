// Draws mutants by seed: each is one change in one file of a room that still compiles. Longer files have more of them.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { createRandom } from '../random.ts'
import { type Change, changesOf } from './operators.ts'

export const roomNames = ['cache', 'keys', 'provider', 'api'] as const
export type Room = (typeof roomNames)[number]

export type Mutant = {
  readonly number: number
  readonly room: Room
  /** Such as `src/cache/loads.ts`. */
  readonly file: string
  readonly line: number
  readonly operator: string
  /** The lines that change, joined into one. */
  readonly before: string
  readonly after: string
  /** The whole file. */
  readonly source: string
}

// What is unused because of the change says nothing of the program.
const unusedCodes = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205])

/**
 * The mutants of a seed, always the same for the same sources.
 * @param root the folder of the checkout, with a slash at its end
 */
export const drawMutants = (root: string, count: number, seed: number, rooms: readonly Room[]): Mutant[] => {
  // The file that differs from the disk, one at a time.
  let changed: { readonly path: string; readonly source: string } | undefined
  const readFile = (path: string): string | undefined => (path === changed?.path ? changed.source : undefined)
  const api = new API({ cwd: root, fs: { readFile } })
  let snapshot: ReturnType<typeof api.updateSnapshot> | undefined
  const programOf = (changes: Parameters<typeof api.updateSnapshot>[0]) => {
    const former = snapshot
    snapshot = api.updateSnapshot(changes)
    // Otherwise the compiler keeps each of them.
    former?.dispose()
    return snapshot.getProjects()[0]?.program
  }
  const compiles = (path: string, source: string): boolean => {
    const files = changed ? [changed.path, path] : [path]
    changed = { path, source }
    const program = programOf({ fileChanges: { changed: files } })
    const faults = program?.getSemanticDiagnostics(path) ?? []
    return (
      program?.getSyntacticDiagnostics(path).length === 0 && faults.every(({ code }) => unusedCodes.has(code))
    )
  }
  try {
    const program = programOf({ openProjects: [join(root, 'tsconfig.json')] })
    const files = rooms.flatMap(room =>
      globSync(`src/${room}/**/*.ts`, { cwd: root, exclude: ['**/*.d.ts'] })
        .sort()
        .map(file => {
          const text = readFileSync(join(root, file), 'utf8')
          const tree = program?.getSourceFile(join(root, file))
          return { room, file, text, changes: tree ? changesOf(tree) : [] }
        }),
    )
    const random = createRandom('mutants', seed)
    const mutants: Mutant[] = []
    while (mutants.length < count && files.some(({ changes }) => changes.length > 0)) {
      const { room, file, text, changes } = byLength(files, random.fraction())
      const [change] = changes.splice(random.between(0, changes.length - 1), 1)
      if (!change) continue
      const source = text.slice(0, change.from) + change.replacement + text.slice(change.to)
      if (!compiles(join(root, file), source)) continue
      const shown = linesOf(text, change)
      mutants.push({ number: mutants.length + 1, room, file, operator: change.operator, ...shown, source })
    }
    return mutants
  } finally {
    api.close()
  }
}

const byLength = <File extends { readonly text: string }>(files: readonly File[], fraction: number): File => {
  let left = fraction * files.reduce((sum, { text }) => sum + text.length, 0)
  const found = files.find(({ text }) => {
    left -= text.length
    return left < 0
  })
  return found ?? (files.at(-1) as File)
}

/** The number of the first line that changes, and the lines before and after. */
const linesOf = (text: string, { from, to, replacement }: Change) => {
  const begin = text.lastIndexOf('\n', from - 1) + 1
  const next = text.indexOf('\n', to)
  const end = next < 0 ? text.length : next
  return {
    line: text.slice(0, from).split('\n').length,
    before: oneLine(text.slice(begin, end)),
    after: oneLine(text.slice(begin, from) + replacement + text.slice(to, end)),
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()
