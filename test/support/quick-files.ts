// Prints the test files that start no process, neither themselves nor through what they import from the tests: those of
// `npm run test:quick`. The others are run by `npm test`, which runs all.

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

const files = globSync('test/**/*.test.ts', { cwd: root }).sort()
process.stdout.write(`${files.filter(file => !startsProcess(file)).join('\n')}\n`)
