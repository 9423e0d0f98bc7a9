// The cache of a fleet against its bars: `npm run bench:cache`. Runs the rows one after the other, tells how far it is on
// standard error, prints a table and writes docs/capacity.md. What a row does is the row's; a missed bar is a result
// like any other, and only a row that breaks makes the exit code 1.

import { parseArgs } from 'node:util'
import { badBodies } from './cache/bad-bodies.ts'
import { budgetDay } from './cache/budget-day.ts'
import { day } from './cache/day.ts'
import { dueTimes } from './cache/due-times.ts'
import { holderKilled, redisKilled, stampede } from './cache/fleet.ts'
import { form } from './cache/form.ts'
import { memory } from './cache/memory.ts'
import { outage } from './cache/outage.ts'
import { type Ran, tableOf, writeReport } from './cache/report.ts'
import { restart } from './cache/restart.ts'
import type { Row } from './cache/row.ts'

const rows: readonly Row[] = [
  stampede,
  holderKilled,
  redisKilled,
  day,
  outage,
  badBodies,
  budgetDay,
  dueTimes,
  restart,
  memory,
  form,
]

const usage = `Usage: npm run -s bench:cache -- [options]

Measures the cache of a fleet against its bars and writes docs/capacity.md. Needs redis-server on the path.

  --only <row,row>  these rows alone, without writing docs/capacity.md
  --json            the results as JSON on standard output
  --help            this text

Rows: ${rows.map(({ id }) => id).join(', ')}
`

const tell = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

const runRow = async (row: Row): Promise<Ran> => {
  const teardowns: (() => unknown)[] = []
  const scope = { teardown: (fn: () => unknown) => void teardowns.push(fn) }
  const started = performance.now()
  try {
    const result = await row.run(scope, text => tell(`${row.id}: ${text}`))
    return { row, result, seconds: (performance.now() - started) / 1000 }
  } catch (error) {
    return { row, crash: String(error instanceof Error ? error.stack : error), seconds: Number.NaN }
  } finally {
    for (const teardown of teardowns.reverse()) await teardown()
  }
}

const chosenRows = (only: string | undefined): readonly Row[] => {
  if (only === undefined) return rows
  return only.split(',').map(id => {
    const row = rows.find(one => one.id === id.trim())
    if (!row) throw new Error(`--only names "${id}"; allowed: ${rows.map(one => one.id).join(', ')}`)
    return row
  })
}

try {
  const { values } = parseArgs({
    options: { only: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) process.stdout.write(usage)
  else {
    const ran: Ran[] = []
    for (const row of chosenRows(values.only)) {
      tell(`${row.id}: begins`)
      const done = await runRow(row)
      tell(`${row.id}: ${done.crash ? `broke: ${done.crash}` : `done in ${done.seconds.toFixed(0)} s`}`)
      ran.push(done)
    }
    if (process.stderr.isTTY) process.stderr.write('\n')
    process.stdout.write(
      values.json
        ? `${JSON.stringify(ran.map(({ row, ...rest }) => ({ row: row.id, ...rest })))}\n`
        : tableOf(ran),
    )
    if (values.only === undefined) await writeReport(ran)
    if (ran.some(({ crash }) => crash !== undefined)) process.exitCode = 1
  }
} catch (error) {
  process.stderr.write(`bench:cache: ${error instanceof Error ? error.message : error}\n${usage}`)
  process.exitCode = 1
}
