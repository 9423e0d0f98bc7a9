// How many requests one core sends, our replay beside autocannon and wrk, and how often a comparison of replays is wrong:
// `npm run bench:replay`.

import { readFile, writeFile } from 'node:fs/promises'
import { pairs } from './replay/pairs.ts'
import { senders } from './replay/senders.ts'
import type { Ran } from './report.ts'
import { runBench } from './run-rows.ts'

const page = new URL('../docs/load-testing.md', import.meta.url)

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
  summary: 'Measures how many requests one core sends, and what a comparison makes of equal replays,',
  page: 'docs/load-testing.md',
  needs: 'Needs two cores, and wrk for its row.',
  rows: [senders, pairs],
  settings: {
    rounds: { help: 'of senders: rounds of all in turn', usual: 3 },
    seconds: { help: 'of senders: seconds of each', usual: 4 },
  },
  // Sections of a page that people write.
  write: async ran => {
    let text = await readFile(page, 'utf8')
    for (const one of ran) {
      const [from, to] = [`<!-- bench:replay ${one.row.id} -->`, `<!-- /bench:replay ${one.row.id} -->`]
      const [before, rest] = text.split(from)
      const after = rest?.split(to)[1]
      if (after === undefined) throw new Error(`docs/load-testing.md has no ${from} … ${to}`)
      text = `${before}${from}\n${textOf(one)}${to}${after}`
    }
    await writeFile(page, text)
  },
})
