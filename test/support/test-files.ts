// Prints what `npm test` gives to tap: the test files that start processes, and for the others of each folder one file, written
// here, that imports them one after the other. They share a process, because starting one and loading tap, the product and its
// packages takes longer than most of these tests. With `--quick` only those. A file by its name has a process of its own.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { allFiles, quickFiles } from './quick-files.ts'

const root = join(import.meta.dirname, '..', '..')
const written = join('.tap', 'together')

rmSync(join(root, written), { recursive: true, force: true })
mkdirSync(join(root, written), { recursive: true })

const quick = quickFiles()
const together = Map.groupBy(quick, dirname)
const groups = [...together].map(([folder, files]) => {
  const path = join(written, `${folder.replaceAll('/', '-')}.test.mjs`)
  const lines = files.map(file => `await import('${relative(written, file)}')`)
  writeFileSync(join(root, path), `// ${files.map(file => basename(file)).join(', ')}\n${lines.join('\n')}\n`)
  return path
})
const others = process.argv.includes('--quick') ? [] : allFiles().filter(file => !quick.includes(file))
process.stdout.write(`${[...groups, ...others].join('\n')}\n`)
