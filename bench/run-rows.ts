// Runs the rows of a benchmark one after the other, tells how far it is on standard error, prints a table and lets the
// benchmark write its page. What a row does is the row's; a missed bar is a result like any other, and only a row that
// breaks makes the exit code 1.

import { parseArgs } from 'node:util'
import { type Ran, tableOf } from './report.ts'
import type { Row } from './row.ts'

export type Bench = {
  /** As npm calls it, such as `bench:cache`. */
  readonly name: string
  readonly summary: string
  readonly page: string
  readonly rows: readonly Row[]
  /** Writes the page when all rows were run. */
  write(ran: readonly Ran[]): Promise<void>
}

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

export const runBench = async ({ name, summary, page, rows, write }: Bench): Promise<void> => {
  const ids = rows.map(({ id }) => id).join(', ')
  const usage = `Usage: npm run -s ${name} -- [options]

${summary} and writes ${page}. Needs redis-server on the path.

  --only <row,row>  these rows alone, without writing ${page}
  --json            the results as JSON on standard output
  --help            this text

Rows: ${ids}
`
  const chosenRows = (only: string | undefined): readonly Row[] =>
    only?.split(',').map(id => {
      const row = rows.find(one => one.id === id.trim())
      if (!row) throw new Error(`--only names "${id}"; allowed: ${ids}`)
      return row
    }) ?? rows

  try {
    const { values } = parseArgs({
      options: { only: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean' } },
    })
    if (values.help) {
      process.stdout.write(usage)
      return
    }
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
    if (values.only === undefined) await write(ran)
    if (ran.some(({ crash }) => crash !== undefined)) process.exitCode = 1
  } catch (error) {
    process.stderr.write(`${name}: ${error instanceof Error ? error.message : error}\n${usage}`)
    process.exitCode = 1
  }
}
