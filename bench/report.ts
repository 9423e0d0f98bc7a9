// Formats the results of a benchmark: the table on standard output, and its section of docs/performance.md with the machine, how to read it
// and what it does not prove.

import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { writeMarkedPart } from '../fuzz/marked-part.ts'
import { systemClock } from '../src/common/clock.ts'
import type { Result, Row } from './row.ts'

export type Ran = {
  readonly row: Row
  readonly result?: Result
  readonly crash?: string
  readonly seconds: number
}

const docs = new URL('../docs/', import.meta.url)

const linesOf = (ran: readonly Ran[]): string[][] =>
  ran.flatMap(({ row, result, crash }) =>
    crash === undefined
      ? (result?.findings ?? []).map(({ what, bar, measured, met }) => [
          row.id,
          what,
          bar,
          measured,
          met === null ? '—' : met ? 'yes' : '**no**',
        ])
      : [[row.id, 'the row broke', '—', crash.split('\n')[0] ?? '', '**no**']],
  )

const tableFrom = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')

const markdown = (lines: readonly string[][]): string =>
  tableFrom(['row', 'what', 'bar', 'measured', 'met?'], lines)

/** Tables of figures, then sentences. */
const besides = (ran: readonly Ran[]): string =>
  ran
    .flatMap(({ result }) => [
      ...(result?.table ? [tableFrom(result.table.head, result.table.lines)] : []),
      ...(result?.notes ?? []),
    ])
    .map(text => `${text}\n`)
    .join('\n')

export const tableOf = (ran: readonly Ran[]): string => `${markdown(linesOf(ran))}\n\n${besides(ran)}`

const machine = (ran: readonly Ran[]): string[] => {
  const redis = spawnSync('redis-server', ['--version']).stdout?.toString() ?? ''
  return [
    `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, shared with other work`,
    `Linux (${process.arch}), Node ${process.version}, Redis ${/v=(\S+)/.exec(redis)?.[1] ?? 'not found'}`,
    ...new Set(ran.flatMap(({ result }) => result?.versions ?? [])),
  ]
}

export type Section = {
  readonly title: string
  readonly intro: string
  readonly howToRead: string
  readonly doesNotProve: readonly string[]
}

/** Writes the section of a benchmark in docs/performance.md, and the drawings beside it. */
export const writeSection = async (
  bench: string,
  { title, intro, howToRead, doesNotProve }: Section,
  ran: readonly Ran[],
): Promise<void> => {
  const drawings = ran.flatMap(({ result }) => Object.entries(result?.drawings ?? {}))
  for (const [name, { svg }] of drawings) await writeFile(new URL(name, docs), svg)
  const missed = linesOf(ran).filter(cells => cells[4] === '**no**').length
  const minutes = ran.reduce((total, { seconds }) => total + (seconds || 0), 0) / 60
  await writeMarkedPart(
    fileURLToPath(new URL('performance.md', docs)),
    bench,
    `
## ${title}

${intro} Written by \`npm run ${bench}\`.

- ${new Date(systemClock.now()).toISOString().slice(0, 10)}, ${minutes.toFixed(1)} minutes in all
${machine(ran)
  .map(line => `- ${line}`)
  .join('\n')}

${markdown(linesOf(ran))}

${missed === 0 ? 'Every bar was met in this run.' : `${missed} of the bars ${missed === 1 ? 'was' : 'were'} missed in this run, with figures in the table too.`}

${besides(ran)}
${drawings.map(([name, { caption }]) => `![${caption}](${name})\n`).join('\n')}
### How to read it

${howToRead}

${ran.map(({ row }) => `- **${row.id}**: ${row.method}`).join('\n')}

One row again: \`npm run -s ${bench} -- --only ${ran[0]?.row.id}\`; \`--json\` gives all figures.

### Limits of this measurement

${doesNotProve.map(line => `- ${line}`).join('\n')}
`,
  )
}
