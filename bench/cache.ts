// What the cache promises, measured: a table on the screen and in docs/capacity.md. Each row stands by itself; a bar
// that is missed is printed as missed.

import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { badBodies } from './cache/bad-bodies.ts'
import { dayByAge, dayByRun } from './cache/demand-day.ts'
import { form } from './cache/form.ts'
import { memory } from './cache/memory.ts'
import { outage } from './cache/outage.ts'
import { restart } from './cache/restart.ts'
import { shortBudget } from './cache/short-budget.ts'
import { spread } from './cache/spread.ts'
import type { Measured, Row } from './cache/stage.ts'
import { holderKilled, oneLoad, redisGone } from './cache/stampede.ts'

const rows: readonly Row[] = [
  oneLoad,
  holderKilled,
  redisGone,
  dayByAge,
  dayByRun,
  outage,
  badBodies,
  shortBudget,
  spread,
  restart,
  memory,
  form,
]

const help = `Measures what the cache promises and writes docs/capacity.md. About six minutes; redis-server is needed.

Usage: npm run -s bench:cache -- [--only <row,row>] [--json]

Rows: ${rows.map(({ name }) => name).join(', ')}
With --only the page is not written.

Example:
  npm run -s bench:cache -- --only stampede,restart`

type Result = Row & Measured & { readonly seconds: number }

const runRow = async (row: Row): Promise<Result> => {
  const teardowns: (() => unknown)[] = []
  const began = performance.now()
  try {
    const measured = await row.run({
      teardown: fn => void teardowns.push(fn),
      progress: text => void process.stderr.write(`\r\x1b[K${row.name}: ${text}`),
    })
    return { ...row, ...measured, seconds: (performance.now() - began) / 1000 }
  } finally {
    process.stderr.write('\r\x1b[K')
    for (const teardown of teardowns.reverse()) await teardown()
  }
}

const verdict = ({ met }: Measured): string => (met === null ? '–' : met ? 'yes' : '**no**')

const pageOf = (results: readonly Result[]): string => {
  const [{ model = 'unknown' } = {}] = cpus()
  const table = results.map(
    result => `| ${result.what} | ${result.bar} | ${result.measured} | ${verdict(result)} |`,
  )
  const notes = results.flatMap(({ what, notes = [] }) =>
    notes.length > 0 ? [`**${what[0]?.toUpperCase()}${what.slice(1)}.** ${notes.join('\n\n')}`, ''] : [],
  )
  return `# Capacity: what the cache was measured to do

Written by \`npm run bench:cache\` on ${new Date().toISOString().slice(0, 10)}: Node ${process.version}, ${cpus().length} × ${model}, shared with
other work. Gateways, provider and Redis are real processes on this machine; the provider is the simulated one, which
counts weight by Open-Meteo's rules. *w* is the weight of a cell, 3.0.

| What | Bar | Measured | Met |
| --- | --- | --- | --- |
${table.join('\n')}

${notes.join('\n')}
## What this does not prove

Everything runs on one machine, so no network lies between the parts, and processes take the processor from one another:
times are upper bounds of what the code does and lower bounds of what a network adds. The provider is a simulation of the
real one by its documents and source. Throughput is not measured here.
`
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
})
const names = values.only?.split(',')
const unknown = names?.find(name => !rows.some(row => row.name === name))
if (values.help) process.stdout.write(`${help}\n`)
else if (unknown !== undefined) {
  process.stderr.write(
    `bench:cache: --only names ${unknown}; allowed: ${rows.map(({ name }) => name).join(', ')}\n`,
  )
  process.exitCode = 2
} else {
  const results: Result[] = []
  for (const row of rows) {
    if (names && !names.includes(row.name)) continue
    try {
      const result = await runRow(row)
      results.push(result)
      if (!values.json)
        process.stdout.write(
          `${result.what}\n  bar       ${result.bar}\n  measured  ${result.measured}\n  met       ${verdict(result).replaceAll('*', '')} (${result.seconds.toFixed(0)} s)\n`,
        )
    } catch (error) {
      process.stderr.write(
        `bench:cache: ${row.name} broke off: ${error instanceof Error ? error.stack : error}\n`,
      )
      process.exitCode = 1
    }
  }
  if (values.json)
    process.stdout.write(
      `${JSON.stringify(results.map(({ name, what, bar, measured, met, notes = [] }) => ({ name, what, bar, measured, met, notes })))}\n`,
    )
  if (!names && process.exitCode !== 1) {
    const docs = new URL('../docs/', import.meta.url)
    await writeFile(new URL('capacity.md', docs), pageOf(results))
    for (const { plots = {} } of results)
      for (const [file, text] of Object.entries(plots)) await writeFile(new URL(file, docs), text)
  }
}
