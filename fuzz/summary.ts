// Formats the results of a run: a table, text and JSON, and the measured part of a page. Says what was tried, what was checked, what
// failed and how to run it again.

import { measuredWith, readMarkedPart, writeMarkedPart } from './marked-part.ts'
import type { Found, Ran } from './run-target.ts'

export const counted = (number: number): string => number.toLocaleString('en-US')

/** The number of cases by target, as a Markdown table. */
const tableOf = (ran: readonly Ran[]): string =>
  [
    ['target', 'cases', 'kinds', 'cases/s', 'what holds for every case', 'faults'],
    ['---', '--:', '--:', '--:', '---', '--:'],
    ...ran.map(({ target, cases, seconds, kinds, found }) => [
      target.name,
      counted(cases),
      String(kinds.size),
      counted(Math.round(cases / seconds)),
      target.checks,
      found ? '1' : '0',
    ]),
  ]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n')

/** How many cases there were of each kind: what stands before the colon. */
const kindsOf = ({ kinds }: Ran): string => {
  const sums = new Map<string, number>()
  for (const [kind, times] of kinds) {
    const [begin = kind] = kind.split(':')
    sums.set(begin, (sums.get(begin) ?? 0) + times)
  }
  const sorted = [...sums].sort(([, one], [, other]) => other - one)
  return `Of these ${sorted.map(([kind, times]) => `${kind} ${counted(times)}`).join(', ')}.`
}

/** The command that runs exactly the cases of a fault. */
const repeat = (seed: number, { target }: Ran, { path }: Found): string =>
  `npm run -s fuzz -- --seed ${seed} --only ${target.name}${path === undefined ? '' : ` --case ${path}`}`

export const textOf = (seed: number, ran: readonly Ran[]): string =>
  [
    tableOf(ran),
    ran.flatMap(({ notes }) => notes.map(note => `Not tried: ${note}.`)).join('\n'),
    ...ran.map(
      one =>
        one.found &&
        `${one.target.name}: ${one.found.rule} (${one.found.kind})
  seen:   ${one.found.detail}
  case:   ${one.found.printed}
  repeat: ${repeat(seed, one, one.found)}`,
    ),
  ]
    .filter(Boolean)
    .join('\n\n')

export const jsonOf = (seed: number, ran: readonly Ran[], limit: string): string =>
  JSON.stringify({
    seed,
    notes: [limit, ...ran.flatMap(({ notes }) => notes)],
    targets: ran.map(one => ({
      target: one.target.name,
      cases: one.cases,
      seconds: Math.round(one.seconds * 10) / 10,
      checks: one.target.checks,
      kinds: Object.fromEntries(one.kinds),
      fault: one.found ? { ...one.found, repeat: repeat(seed, one, one.found) } : null,
    })),
  })

const partOf = (targets: readonly string[]): string => (targets.length === 1 ? `fuzz-${targets[0]}` : 'fuzz')

/** @throws UsageError when the page lacks the markers */
export const checkReport = async (file: string, targets: readonly string[]): Promise<void> =>
  void (await readMarkedPart(file, partOf(targets)))

/** Rewrites one part for all targets, and one for a target alone, which has its kinds of cases. @throws UsageError as `checkReport` */
export const writeReport = async (
  file: string,
  seed: number,
  ran: readonly Ran[],
  limit: string,
): Promise<void> => {
  const sum = (of: (one: Ran) => number): number => ran.reduce((total, one) => total + of(one), 0)
  const faults = sum(({ found }) => Number(found !== undefined))
  await writeMarkedPart(
    file,
    partOf(ran.map(({ target }) => target.name)),
    `
${counted(sum(({ cases }) => cases))} cases in ${counted(Math.round(sum(({ seconds }) => seconds)))} s, ${faults === 0 ? 'no fault' : `${faults} faults`}.

${measuredWith(`seed ${seed}`)}
- ${limit}

${tableOf(ran)}
${ran.length === 1 && ran[0] ? `\n${kindsOf(ran[0])}\n` : ''}`,
  )
}
