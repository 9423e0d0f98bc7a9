// Runs the rows of a benchmark one after the other, shows progress on standard error, prints a table and lets the
// benchmark write its page. A missed bar is a result like any other; only a row that throws makes the exit code 1.

import { parseArgs } from 'node:util'
import { type Ran, tableOf } from './report.ts'
import type { Row, Wish } from './row.ts'

export type Bench = {
  /** Its npm script, such as `bench:cache`. */
  readonly name: string
  readonly summary: string
  readonly page: string
  /** What has to be installed, as a sentence; Redis if not given. */
  readonly needs?: string
  readonly rows: readonly Row[]
  /** Options with whole numbers of at least 1. */
  readonly settings?: Readonly<Record<string, { readonly help: string; readonly usual: number }>>
  /** Writes the page after all rows have run. */
  write(ran: readonly Ran[]): Promise<void>
}

const showProgress = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

const runRow = async (row: Row, wish: Wish): Promise<Ran> => {
  const teardowns: (() => unknown)[] = []
  const scope = { teardown: (fn: () => unknown) => void teardowns.push(fn) }
  const started = performance.now()
  try {
    const result = await row.run(scope, text => showProgress(`${row.id}: ${text}`), wish)
    return { row, result, seconds: (performance.now() - started) / 1000 }
  } catch (error) {
    return { row, crash: String(error instanceof Error ? error.stack : error), seconds: Number.NaN }
  } finally {
    for (const teardown of teardowns.reverse()) await teardown()
  }
}

type Chosen = { readonly row: Row; readonly parts: readonly string[] }

const allOf = (row: Row): Chosen => ({ row, parts: row.parts ?? [] })

/** The named rows; of rows with parts, the named parts. */
const chosenOf = (rows: readonly Row[], only: string): Chosen[] => {
  const chosen = new Map<Row, string[]>()
  for (const id of only.split(',').map(text => text.trim())) {
    const row = rows.find(one => one.id === id || one.parts?.includes(id))
    if (!row) throw new Error(`--only names "${id}"; allowed: ${idsOf(rows).join(', ')}`)
    chosen.set(row, [...(chosen.get(row) ?? []), ...(row.id === id ? (row.parts ?? []) : [id])])
  }
  return [...chosen].map(([row, parts]) => ({ row, parts }))
}

const idsOf = (rows: readonly Row[]): string[] => rows.flatMap(({ id, parts = [] }) => [id, ...parts])

const settingOf = (name: string, text: string | boolean | undefined, usual: number): number => {
  const value = text === undefined ? usual : Number(text)
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} is ${text}; allowed: a whole number of at least 1`)
  return value
}

export const runBench = async ({
  name,
  summary,
  page,
  rows,
  settings = {},
  write,
  needs = 'Needs redis-server on the path.',
}: Bench): Promise<void> => {
  const options = Object.entries(settings).map(
    ([option, { help, usual }]) => `  ${`--${option} <number>`.padEnd(17)} ${help}; default ${usual}\n`,
  )
  const usage = `Usage: npm run -s ${name} -- [options]

${summary} and writes ${page}. ${needs}

  --only <row,row>  these rows alone, without writing ${page}
${options.join('')}  --json            the results as JSON on standard output
  --help            this text

Rows: ${idsOf(rows).join(', ')}
`
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
        ...Object.fromEntries(Object.keys(settings).map(option => [option, { type: 'string' as const }])),
      },
    })
    if (values.help) {
      process.stdout.write(usage)
      return
    }
    const given = values as Record<string, string | boolean | undefined>
    const set = Object.fromEntries(
      Object.entries(settings).map(([option, { usual }]) => [
        option,
        settingOf(option, given[option], usual),
      ]),
    )
    const ran: Ran[] = []
    for (const { row, parts } of values.only ? chosenOf(rows, values.only) : rows.map(allOf)) {
      showProgress(`${row.id}: begins`)
      const done = await runRow(row, { settings: set, parts })
      showProgress(
        `${row.id}: ${done.crash ? `broke: ${done.crash}` : `done in ${done.seconds.toFixed(0)} s`}`,
      )
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
