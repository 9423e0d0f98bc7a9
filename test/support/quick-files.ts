// The test files that start no process, neither themselves nor through what they import from the tests. test-files.ts has those
// of a folder share a process; `npm run test:quick` runs nothing else.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const known = new Map<string, boolean>()

/** Whether a file or one that it imports can start a process. Those of `src` and packages start none by being imported. */
const startsProcess = (file: string): boolean => {
  const found = known.get(file)
  if (found !== undefined) return found
  known.set(file, false)
  const text = readFileSync(join(root, file), 'utf8')
  const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, path]) =>
    relative(root, join(root, dirname(file), path ?? '')),
  )
  const starts =
    /'node:(child_process|worker_threads|cluster)'|playwright-core/.test(text) ||
    imported.some(path => path.startsWith('test/') && startsProcess(path))
  known.set(file, starts)
  return starts
}

export const allFiles = (): string[] => globSync('test/**/*.test.ts', { cwd: root }).sort()

export const quickFiles = (): string[] => allFiles().filter(file => !startsProcess(file))
