// The results in words: the table on standard output, and docs/capacity.md with the machine, how to read it and what it
// does not prove.

import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { systemClock } from '../../src/clock.ts'
import type { Result, Row } from './row.ts'

export type Ran = {
  readonly row: Row
  readonly result?: Result
  readonly crash?: string
  readonly seconds: number
}

const docs = new URL('../../docs/', import.meta.url)

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

const markdown = (lines: readonly string[][]): string =>
  [['row', 'what', 'bar', 'measured', 'met?'], ['---', '---', '---', '---', '---'], ...lines]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n')

export const tableOf = (ran: readonly Ran[]): string =>
  `${markdown(linesOf(ran))}\n${ran
    .flatMap(({ result }) => result?.notes ?? [])
    .map(note => `\n${note}\n`)
    .join('')}`

const machine = (): string[] => {
  const redis = spawnSync('redis-server', ['--version']).stdout?.toString() ?? ''
  return [
    `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, shared with other work`,
    `Linux (${process.arch}), Node ${process.version}, Redis ${/v=(\S+)/.exec(redis)?.[1] ?? 'not found'}`,
  ]
}

/** Writes docs/capacity.md and the drawings beside it. */
export const writeReport = async (ran: readonly Ran[]): Promise<void> => {
  const drawings = ran.flatMap(({ result }) => Object.entries(result?.drawings ?? {}))
  for (const [file, { svg }] of drawings) await writeFile(new URL(file, docs), svg)
  const missed = linesOf(ran).filter(cells => cells[4] === '**no**').length
  const minutes = ran.reduce((total, { seconds }) => total + (seconds || 0), 0) / 60
  await writeFile(
    new URL('capacity.md', docs),
    `# Capacity of the cache

What the cache of a fleet costs, holds and survives, measured against its bars. Written by \`npm run bench:cache\`; do not
edit it by hand.

- ${new Date(systemClock.now()).toISOString().slice(0, 10)}, ${minutes.toFixed(1)} minutes in all
${machine()
  .map(line => `- ${line}`)
  .join('\n')}

${markdown(linesOf(ran))}

${missed === 0 ? 'Every bar was met in this run.' : `${missed} of the bars were missed in this run; their figures stand above like the others.`}

${ran
  .flatMap(({ result }) => result?.notes ?? [])
  .map(note => `${note}\n`)
  .join('\n')}
${drawings.map(([file, { caption }]) => `![${caption}](${file})\n`).join('\n')}
## How to read it

Redis, the provider and, where processes matter, the gateways are processes of their own on one machine; the provider is
\`abohawa provider\`, and what it was asked is taken from its own counters. Where a day has to pass, the gateway runs in the
measuring process on a clock that is moved, and the provider's clock is moved with it; timeouts and rests pass in real time.

${ran.map(({ row }) => `- **${row.id}**: ${row.method}`).join('\n')}

One row again: \`npm run -s bench:cache -- --only ${ran[0]?.row.id}\`; \`--json\` gives all figures.

## What it does not prove

- Nothing here is throughput: callers, gateways, provider and Redis share two cores, so times are upper bounds that other
  work on the machine moves, and a quiet machine does better. Counts do not depend on that.
- The provider is simulated. It keeps the real one's protocol, weights and limits, not its network or its bad days.
- One Redis without replicas: a failover or a cluster that reshards is not measured.
- Days pass in steps of 15 minutes, so what happens between two steps is not seen. A fleet over a day is not measured either: the
  rows of a day run one gateway.
- Memory is measured over minutes, not weeks; slow leaks would not show.
`,
  )
}
