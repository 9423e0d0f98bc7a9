// The benchmark: `npm run bench`. Every figure about speed, capacity and endurance in this project comes from it. Runs its rows one
// after the other and prints their tables, or writes them into their sections of a page; with --base it compares this checkout with
// another. A missed bar is a result like any other; only a row that breaks makes the exit code 1.

import { parseArgs } from 'node:util'
import { readMarkedPart, writeMarkedPart } from '../fuzz/marked-part.ts'
import { systemClock } from '../src/common/clock.ts'
import { inScope } from '../test/support/teardown.ts'
import { buildRows, compareBuilds } from './builds.ts'
import { warmSeconds } from './rounds.ts'
import { findingsText, type Options, type Result, type Row, tableText } from './row.ts'
import { day } from './rows/day.ts'
import { floods } from './rows/floods.ts'
import { garbage } from './rows/garbage.ts'
import { greedyKey } from './rows/greedy.ts'
import { http2 } from './rows/http2.ts'
import { keys } from './rows/keys.ts'
import { memory, mix, open, spread } from './rows/mix.ts'
import { newConnections, one } from './rows/one.ts'
import { operators } from './rows/operators.ts'
import { places } from './rows/places.ts'
import { processes } from './rows/processes.ts'
import { exact, outage } from './rows/quotas.ts'
import { senders } from './rows/senders.ts'
import { soak } from './rows/soak.ts'
import { start } from './rows/start.ts'
import { tls } from './rows/tls.ts'
import { units } from './rows/units.ts'

const rows: readonly Row[] = [
  mix,
  open,
  one,
  newConnections,
  tls,
  http2,
  places,
  garbage,
  spread,
  memory,
  start,
  day,
  greedyKey,
  units,
  processes,
  exact,
  outage,
  keys,
  operators,
  floods,
  senders,
  soak,
]

const usual = { rounds: 5, seconds: 3, pairs: 5, minutes: undefined, warm: warmSeconds, keys: 1_000_000 }

const usage = `Usage: npm run -s bench -- [options]

Measures speed, capacity and endurance, and prints a table of each row. Needs Linux and, on the path, redis-server, wrk, h2load
and nginx with Lua (Debian and Ubuntu: redis-server wrk nghttp2-client nginx libnginx-mod-http-lua).

  --only <row,row>    these rows alone; all but soak by default
  --rounds <number>   fresh processes of each server in turn; default ${usual.rounds}
  --seconds <number>  of load that is measured on each; default ${usual.seconds}
  --pairs <number>    of the open loop, the floods and of --base; default ${usual.pairs}
  --minutes <number>  of memory, 5 by default, and of soak, 120 by default
  --keys <number>     of the row keys; default ${usual.keys}
  --report <file>     writes each row that ran into its section of this page
  --base <rev>        compares this checkout with a revision, or the folder of an installed checkout, over fresh processes of both in
                      turn; may be given again
  --warm <number>     with --base: seconds of load, up to four times, until 40,000 answers before those that are measured;
                      default ${usual.warm}
  --json              all figures as JSON on standard output
  --help              this text

Examples:
  npm run -s bench -- --only mix,one --rounds 3 --report docs/performance.md
  npm run -s bench -- --base HEAD~1 --only mix,new --pairs 6

Rows:
${rows.map(({ id, what }) => `  ${id.padEnd(9)} ${what}`).join('\n')}

Rows with --base: ${buildRows.map(({ id }) => id).join(', ')}
`

const showProgress = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

/** The named rows, in the order in which they are named. */
const chosenOf = <Of extends { readonly id: string }>(all: readonly Of[], only: string): Of[] =>
  only.split(',').map(id => {
    const row = all.find(one => one.id === id.trim())
    if (!row) throw new Error(`--only must be some of ${all.map(one => one.id).join(', ')}, got "${id}"`)
    return row
  })

const wholeOf = (name: string, text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} must be an integer of at least 1, got "${text}"`)
  return value
}

const textOf = ({ findings, table, notes = [] }: Result): string =>
  [findingsText(findings), ...(table ? [tableText(table)] : []), ...notes.map(note => `${note}\n`)].join('\n')

/** The command with what was not usual, and the day; the page names the machine. */
const madeBy = (id: string, options: Options): string => {
  const given = (Object.keys(options) as (keyof Options)[])
    .filter(name => options[name] !== usual[name])
    .map(name => ` --${name} ${options[name]}`)
  const day = new Date(systemClock.now()).toISOString().slice(0, 10)
  return `\`--only ${id}${given.join('')}\`, ${day}.`
}

const runRow = async (row: Row, options: Options): Promise<Result | undefined> => {
  const began = performance.now()
  const show = (text: string): void => showProgress(`${row.id}: ${text}`)
  show('begins')
  try {
    const result = await inScope(scope => row.run(scope, options, show))
    show(`done in ${((performance.now() - began) / 1000).toFixed(0)} s\n`)
    return result
  } catch (error) {
    show(`broke: ${error instanceof Error ? error.stack : error}\n`)
    process.exitCode = 1
    return undefined
  }
}

const main = async (): Promise<void> => {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      only: text,
      rounds: { ...text, default: `${usual.rounds}` },
      seconds: { ...text, default: `${usual.seconds}` },
      pairs: { ...text, default: `${usual.pairs}` },
      warm: { ...text, default: `${usual.warm}` },
      keys: { ...text, default: `${usual.keys}` },
      minutes: text,
      report: text,
      base: { ...text, multiple: true },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    return
  }
  const options: Options = {
    rounds: wholeOf('rounds', values.rounds),
    seconds: wholeOf('seconds', values.seconds),
    pairs: wholeOf('pairs', values.pairs),
    keys: wholeOf('keys', values.keys),
    minutes: values.minutes === undefined ? undefined : wholeOf('minutes', values.minutes),
  }
  const { base, only, report, json } = values
  if (base) {
    const chosen = only === undefined ? buildRows : chosenOf(buildRows, only)
    const given = { ...options, warm: wholeOf('warm', values.warm), json }
    process.stdout.write(await inScope(scope => compareBuilds(scope, base, chosen, given, showProgress)))
    return
  }
  const chosen = only === undefined ? rows.filter(({ isLong }) => !isLong) : chosenOf(rows, only)
  // Checked first, because a run takes an hour.
  if (report !== undefined) for (const { id } of chosen) await readMarkedPart(report, `bench ${id}`)
  const results: object[] = []
  for (const row of chosen) {
    const result = await runRow(row, options)
    if (!result) continue
    results.push({ row: row.id, ...result })
    if (!json) process.stdout.write(`${row.id}: ${row.what}\n\n${textOf(result)}\n`)
    if (report !== undefined)
      await writeMarkedPart(report, `bench ${row.id}`, `\n${madeBy(row.id, options)}\n\n${textOf(result)}`)
  }
  if (json) process.stdout.write(`${JSON.stringify(results)}\n`)
}

await main().catch(error => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : error}; --help has all options\n`)
  process.exitCode = 1
})
