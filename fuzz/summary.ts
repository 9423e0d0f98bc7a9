// Formats the results of a run: a table, text and JSON, and the measured part of a page. Says what was tried, what was checked, what
// failed and how to run it again.

import { measuredWith, writeMarkedPart } from './marked-part.ts'
import type { Ran } from './run-target.ts'

export const counted = (number: number): string => number.toLocaleString('en-US')

/** A Markdown table of its lines, of which the second one has how each column is aligned. */
export const tableText = (lines: readonly (readonly string[])[]): string =>
  lines.map((cells, i) => (i === 1 ? `|${cells.join('|')}|` : `| ${cells.join(' | ')} |`)).join('\n')

/** The name of the measured part. */
export const partName = 'fuzz'

/** The number of cases by target, as a Markdown table. */
const tableOf = (ran: readonly Ran[]): string =>
  tableText([
    ['target', 'cases', 'kinds', 'cases/s', 'what holds for every case', 'faults'],
    ['---', '--:', '--:', '--:', '---', '--:'],
    ...ran.map(({ target: { name, checks }, cases, seconds, kinds, found }) => {
      const rate = counted(Math.round(cases / seconds))
      return [name, counted(cases), String(kinds.size), rate, checks, found ? '1' : '0']
    }),
  ])

/** The command that runs exactly the cases of a fault. */
const repeat = (seed: number, { target, found }: Ran): string =>
  `npm run -s fuzz -- --seed ${seed} --only ${target.name}${found?.path === undefined ? '' : ` --case ${found.path}`}`

export const textOf = (seed: number, ran: readonly Ran[]): string =>
  [
    tableOf(ran),
    ...ran.flatMap(one => {
      const { target, found } = one
      if (!found) return []
      return `${target.name}: ${found.rule} (${found.kind})
  seen:   ${found.detail}
  case:   ${found.printed}
  repeat: ${repeat(seed, one)}`
    }),
  ].join('\n\n')

export const jsonOf = (seed: number, ran: readonly Ran[], limit: string): string =>
  JSON.stringify({
    seed,
    notes: [limit],
    targets: ran.map(one => ({
      target: one.target.name,
      cases: one.cases,
      seconds: Math.round(one.seconds * 10) / 10,
      checks: one.target.checks,
      kinds: Object.fromEntries(one.kinds),
      fault: one.found ? { ...one.found, repeat: repeat(seed, one) } : null,
    })),
  })

/** Rewrites the measured part of a page. @throws UsageError when the page lacks the markers */
export const writeReport = async (
  ...[file, seed, ran, limit]: [string, number, readonly Ran[], string]
): Promise<void> => {
  const sum = (of: (one: Ran) => number): number => ran.reduce((total, one) => total + of(one), 0)
  const faults = sum(({ found }) => Number(found !== undefined))
  const begin = `${counted(sum(({ cases }) => cases))} cases in ${counted(Math.round(sum(({ seconds }) => seconds)))} s`
  const text = `
${begin}, ${faults === 0 ? 'no fault' : `${faults} faults`}.

${measuredWith(`seed ${seed}`)}
- ${limit}

${tableOf(ran)}
`
  await writeMarkedPart(file, partName, text)
}
