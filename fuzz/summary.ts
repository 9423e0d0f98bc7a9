// Formats the results of a run as text and as JSON: what was tried, what was checked, what failed and how to reproduce it.

import type { Fault, Ran } from './run-target.ts'

/** The number of cases by target, as a Markdown table. */
export const tableOf = (ran: readonly Ran[]): string =>
  [
    ['target', 'cases', 'kinds', 'cases/s', 'what holds for every case', 'faults'],
    ['---', '--:', '--:', '--:', '---', '--:'],
    ...ran.map(({ target, cases, seconds, shapes, faults }) => [
      target.name,
      counted(cases),
      String(shapes.size),
      counted(Math.round(cases / seconds)),
      target.checks,
      String(faults.length),
    ]),
  ]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n')

/** How many cases there were of each kind: what stands before the colon of a shape. */
export const kindsOf = (ran: readonly Ran[]): string => {
  const kinds = new Map<string, number>()
  for (const { shapes } of ran)
    for (const [shape, times] of shapes) {
      const [kind = shape] = shape.split(':')
      kinds.set(kind, (kinds.get(kind) ?? 0) + times)
    }
  return `Of these ${[...kinds]
    .sort(([, a], [, b]) => b - a)
    .map(([kind, times]) => `${kind} ${counted(times)}`)
    .join(', ')}.`
}

export const notesText = (ran: readonly Ran[]): string =>
  ran.flatMap(({ notes }) => notes.map(note => `Not tried: ${note}.\n`)).join('')

export const faultsText = (ran: readonly Ran[]): string =>
  ran
    .flatMap(({ faults }) => faults)
    .map(
      fault =>
        `${fault.target}: ${fault.rule} (${fault.shape}; ${fault.times} times)\n  seen:   ${fault.detail}\n  case:   ${fault.printed}\n${fault.smallest === undefined ? '' : `  small:  ${fault.smallest}\n`}  repeat: ${repeat(fault)}\n`,
    )
    .join('\n')

/** The command that runs exactly the cases of a fault. */
const repeat = ({ target, seed, cases: [first, last] }: Fault): string =>
  `npm run -s fuzz -- --seed ${seed} --only ${target} --case ${first === last ? first : `${first}-${last}`}`

export const asJson = (seed: number, ran: readonly Ran[], notes: readonly string[]): string =>
  JSON.stringify({
    seed,
    notes: [...notes, ...ran.flatMap(one => one.notes)],
    targets: ran.map(({ target, cases, seconds, shapes, faults }) => ({
      target: target.name,
      cases,
      seconds: Math.round(seconds * 10) / 10,
      checks: target.checks,
      shapes: Object.fromEntries(shapes),
      faults: faults.map(fault => ({ ...fault, repeat: repeat(fault) })),
    })),
  })

export const counted = (number: number): string => number.toLocaleString('en-US')
