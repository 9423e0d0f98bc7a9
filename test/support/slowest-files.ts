// Runs the whole suite and prints how long it took, how much processor time, and its twenty slowest files: `npm run test:slowest`.
// With `--write` the table in docs/testing.md is renewed, unless a test failed.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { write: { type: 'boolean' }, help: { type: 'boolean' } } })
if (values.help) {
  process.stdout.write(
    'usage: npm run test:slowest [-- --write]\n\nRuns all tests and prints the twenty slowest files; --write renews docs/testing.md, unless a test failed.\n',
  )
  process.exit(0)
}

const page = join(import.meta.dirname, '..', '..', 'docs', 'testing.md')
const shown = 20

/** Processor time of all ended children so far, in seconds: user and system, the 14th and 15th field after the name. */
const cpuOfChildren = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / 100
}

const started = performance.now()
const listed = execFileSync(process.execPath, [join(import.meta.dirname, 'test-files.ts')], {
  encoding: 'utf8',
})
const paths = listed.trim().split('\n')
const tap = spawn('tap', ['--reporter=junit', ...paths], { stdio: ['ignore', 'pipe', 'inherit'] })
let report = ''
let ended = 0
tap.stdout.setEncoding('utf8').on('data', (text: string) => {
  report += text
  const now = report.match(/<testsuite name="/g)?.length ?? 0
  if (now > ended && process.stderr.isTTY) process.stderr.write(`\r\x1b[K${now} tests`)
  ended = now
})
const [code] = await once(tap, 'close')
const seconds = (performance.now() - started) / 1000

const suites = [...report.matchAll(/<testsuite name="([^"]+\.test\.(?:ts|mjs))"[^>]* time="([\d.]+)"/g)]
// What a process does with several files is in the report of each of them.
const files = suites
  .filter(([, file = '']) => !file.startsWith('.tap'))
  .map(([, file = '', time]) => ({ file, seconds: Number(time) }))
  .sort((a, b) => b.seconds - a.seconds)
const [, cases = '0', failures = '0'] = /<testsuites [^>]*tests="(\d+)" failures="(\d+)"/.exec(report) ?? []
const clock = `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
const table = `${files.length} files in ${paths.length} processes, ${Number(cases).toLocaleString('en')} cases${failures === '0' ? '' : `, ${failures} failed`}: ${clock}, ${(cpuOfChildren() / 60).toFixed(1)} minutes of processor time, on ${availableParallelism()} cores with Node ${process.version}, ${new Date().toISOString().slice(0, 10)}.

| file | seconds |
| --- | --: |
${files
  .slice(0, shown)
  .map(one => `| \`${one.file}\` | ${one.seconds.toFixed(0)} |`)
  .join('\n')}
`
process.stdout.write(`\n${table}`)
if (values.write && code !== 0) process.stderr.write(`${page} stays as it is, because a test failed.\n`)
else if (values.write) {
  const text = readFileSync(page, 'utf8')
  const [before, , after] = text.split(/(?<=<!-- slowest: begin -->\n)|(?=<!-- slowest: end -->)/)
  writeFileSync(page, `${before}\n${table}\n${after}`)
}
process.exitCode = Number(code)
