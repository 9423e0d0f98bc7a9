// Runs the whole suite and prints how long it took, how much processor time, and its twenty slowest files: `npm run test:slowest`.
// With `--write` the table in docs/testing.md is renewed, unless a test failed.

import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const page = join(import.meta.dirname, '..', '..', 'docs', 'testing.md')
const shown = 20

/** Processor time of all ended children so far, in seconds: user and system, the 14th and 15th field after the name. */
const cpuOfChildren = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / 100
}

const started = performance.now()
const script = join(import.meta.dirname, 'test-files.ts')
const paths = execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')
const { stdout: report, status } = spawnSync('tap', ['--reporter=junit', ...paths], {
  ...{ stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', maxBuffer: 1e9 },
})
const seconds = (performance.now() - started) / 1000

// What a process does with several files is in the report of each of them.
const files = [...report.matchAll(/<testsuite name="([^"]+\.test\.(?:ts|mjs))"[^>]* time="([\d.]+)"/g)]
  .filter(([, file = '']) => !file.startsWith('.tap'))
  .map(([, file = '', time]) => ({ file, seconds: Number(time) }))
  .sort((a, b) => b.seconds - a.seconds)
const [, cases = '0', failures = '0'] = /<testsuites [^>]*tests="(\d+)" failures="(\d+)"/.exec(report) ?? []
const clock = `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
const rows = files.slice(0, shown).map(one => `| \`${one.file}\` | ${one.seconds.toFixed(0)} |\n`)
const table = `${files.length} files in ${paths.length} processes, ${Number(cases).toLocaleString('en')} cases${failures === '0' ? '' : `, ${failures} failed`}: ${clock}, ${(cpuOfChildren() / 60).toFixed(1)} minutes of processor time, on ${availableParallelism()} cores with Node ${process.version}, ${new Date().toISOString().slice(0, 10)}.

| file | seconds |
| --- | --: |
${rows.join('')}`
process.stdout.write(`\n${table}`)
const isToWrite = process.argv.includes('--write')
if (isToWrite && status !== 0) process.stderr.write(`${page} stays as it is, because a test failed.\n`)
else if (isToWrite) {
  const text = readFileSync(page, 'utf8')
  const [before, , after] = text.split(/(?<=<!-- slowest: begin -->\n)|(?=<!-- slowest: end -->)/)
  writeFileSync(page, `${before}\n${table}\n${after}`)
}
process.exitCode = Number(status)
