// Prints what `npm test` gives to tap: files, written here, that each run several test files one after the other (sharing.ts),
// because starting a process and loading tap, the product and its packages takes longer than many a test. With `--quick` only
// those of tests that start no process. A file by its name has a process of its own.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { sharedProcesses } from './shared-processes.ts'

const root = join(import.meta.dirname, '..', '..')
const written = join('.tap', 'together')

rmSync(join(root, written), { recursive: true, force: true })
mkdirSync(join(root, written), { recursive: true })

const pathOf = (files: readonly string[], i: number): string => {
  const [alone = '', ...more] = files
  if (more.length === 0) return alone
  // tap begins them in the order of their names, and with such a name a file comes behind them.
  const path = join(written, `${String(i + 1).padStart(3, '0')}.test.mjs`)
  const list = files.map(file => `  '${relative(written, file)}',\n`).join('')
  const runner = relative(written, 'test/support/sharing.ts')
  writeFileSync(
    join(root, path),
    `import { runTogether } from '${runner}'\n\nawait runTogether(import.meta.url, [\n${list}])\n`,
  )
  return path
}

process.stdout.write(`${sharedProcesses(process.argv.includes('--quick')).map(pathOf).join('\n')}\n`)
