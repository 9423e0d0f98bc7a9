// Prints what `npm test` gives to tap: files, written here, that each run several test files one after the other (sharing.ts),
// because starting a process and loading tap, the product and its packages takes longer than many a test. With `--quick` only
// those of tests that start no process. A file by its name has a process of its own.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { allFiles, quickFiles } from './quick-files.ts'

const root = join(import.meta.dirname, '..', '..')
const written = join('.tap', 'together')
/** A file that starts processes leaves them to its end, and four run at a time. */
const [quickAtMost, othersAtMost] = [40, 4]

/** Files that end their process, or measure or limit it. */
const isAlone = (file: string): boolean =>
  /\bprocess\.exit\(|memoryUsage|\bgc\(\)/.test(readFileSync(join(root, file), 'utf8'))

rmSync(join(root, written), { recursive: true, force: true })
mkdirSync(join(root, written), { recursive: true })

/** Each folder's files are spread over all, so that none has only slow ones. */
const inGroups = (name: string, files: readonly string[], atMost: number): string[] => {
  const count = Math.ceil(files.length / atMost)
  return Array.from({ length: count }, (_, group) => {
    const path = join(written, `${name}-${group + 1}.test.mjs`)
    const own = files.filter((_, i) => i % count === group)
    const list = own.map(file => `  '${relative(written, file)}',`).join('\n')
    writeFileSync(
      join(root, path),
      `import { runTogether } from '${relative(written, 'test/support/sharing.ts')}'\n\nawait runTogether(import.meta.url, [\n${list}\n])\n`,
    )
    return path
  })
}

const quick = quickFiles()
const others = process.argv.includes('--quick') ? [] : allFiles().filter(file => !quick.includes(file))
const files = [
  ...others.filter(isAlone),
  ...inGroups(
    'processes',
    others.filter(file => !isAlone(file)),
    othersAtMost,
  ),
  ...inGroups(
    'quick',
    quick.filter(file => !isAlone(file)),
    quickAtMost,
  ),
  ...quick.filter(isAlone),
]
process.stdout.write(`${files.join('\n')}\n`)
