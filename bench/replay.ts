// How many requests one core sends: our replay beside autocannon and wrk: `npm run bench:replay`.

import { readFile, writeFile } from 'node:fs/promises'
import { senders } from './replay/senders.ts'
import type { Ran } from './report.ts'
import { runBench } from './run-rows.ts'

const page = new URL('../docs/load-testing.md', import.meta.url)
const [from, to] = ['<!-- bench:replay -->', '<!-- /bench:replay -->']

const textOf = ({ row, result, crash }: Ran): string => {
  if (!result) return `\nNot measured: ${crash}\n\n`
  const { table, notes = [], findings } = result
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`
  return [
    `\n${row.method}\n\n`,
    ...(table ? [line(table.head), line(table.head.map(() => '---')), ...table.lines.map(line)] : []),
    '\n',
    ...findings.map(
      ({ what, bar, measured, met }) =>
        `- ${what}: ${measured}${met === null ? '' : ` (bar: ${bar}; ${met ? 'met' : 'missed'})`}.\n`,
    ),
    ...notes.map(note => `\n${note}\n`),
    '\n',
  ].join('')
}

await runBench({
  name: 'bench:replay',
  summary: 'Measures how many requests one core sends, beside autocannon and wrk,',
  page: 'docs/load-testing.md',
  needs: 'Needs two cores, and wrk for its row.',
  rows: [senders],
  settings: {
    rounds: { help: 'rounds of all senders in turn', usual: 3 },
    seconds: { help: 'seconds of each', usual: 4 },
  },
  // A section of a page that people write.
  write: async ran => {
    const text = await readFile(page, 'utf8')
    const [before, rest] = text.split(from)
    const after = rest?.split(to)[1]
    if (after === undefined) throw new Error(`docs/load-testing.md has no ${from} … ${to}`)
    await writeFile(page, `${before}${from}\n${ran.map(textOf).join('')}${to}${after}`)
  },
})
