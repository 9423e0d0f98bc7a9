// Durations and sizes as people write them (`10m`, `2h20m`, `64MiB`) and as the program counts them (milliseconds, bytes).
// A number without its unit is refused, so that nobody has to remember which unit a setting meant.

import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'

/** What is measured, and how it is written. */
export type Measure = {
  readonly noun: string
  readonly examples: string
  /** Two common units. */
  readonly usual: readonly [string, string]
  /** How much each unit is, rising; of two names for one the one to print comes last. */
  readonly factors: Readonly<Record<string, number>>
  /** A number, with decimals if need be, and its unit; of a duration several of them, the largest first. */
  readonly pattern: RegExp
}

const number = '[0-9]+(\\.[0-9]+)?'
const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizeUnits = { B: 1, KB: 1e3, kB: 1e3, KiB: 1_024, MB: 1e6, MiB: 1_048_576, GB: 1e9, GiB: 1_073_741_824 }

const inParts = Object.keys(durationUnits).map((unit, i, units) => {
  const larger = units.slice(i + 1).reverse()
  return `${larger.map(each => `([0-9]+${each})?`).join('')}${number}${unit}`
})

export const durations: Measure = {
  noun: 'duration',
  examples: '500ms, 30s, 10m, 1h or 400d',
  usual: ['s', 'm'],
  factors: durationUnits,
  pattern: new RegExp(`^(${inParts.join('|')})$`),
}

export const sizes: Measure = {
  noun: 'size',
  examples: '512KiB, 64MiB, 1GiB or 10MB',
  usual: ['KiB', 'MiB'],
  factors: sizeUnits,
  pattern: new RegExp(`^${number}(${Object.keys(sizeUnits).join('|')})$`),
}

// The formatter costs a start 13 ms when each duration makes one.
const namesOf = (factors: Measure['factors']): string =>
  new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(Object.keys(factors))

/** The whole number of smallest units that a text means. @throws InputError for a text of another form, or a number that is too large */
export const parse = (text: string, { noun, examples, factors, pattern }: Measure): number => {
  if (/^[0-9]+(\.[0-9]+)?$/.test(text))
    throw new InputError(`${quoted(text)} has no unit: add ${namesOf(factors)}, such as ${examples}`)
  if (!pattern.test(text))
    throw new InputError(
      `${quoted(text)} is not a ${noun}: write a number and its unit (${namesOf(factors)}), such as ${examples}`,
    )
  let value = 0
  for (const [, digits, unit = ''] of text.matchAll(/([0-9.]+)([A-Za-z]+)/g))
    value += Math.round(Number(digits) * (factors[unit] ?? Number.NaN))
  if (!Number.isSafeInteger(value)) throw new InputError(`${quoted(text)} is too large for a ${noun}`)
  return value
}

/** In the largest unit that divides it: 5400000 ms are `90m`. */
export const print = (value: number, { factors }: Measure): string => {
  const units = Object.entries(factors)
  const [name, factor] = (value !== 0 && units.findLast(([, unit]) => value % unit === 0)) ||
    units[0] || ['', 1]
  return `${value / factor}${name}`
}

/** `1.5h` or `1h30m` in whole milliseconds. @throws InputError for anything that is not a duration with its unit */
export const parseDuration = (text: string): number => parse(text, durations)

/** Milliseconds: 5400000 is `90m`. */
export const printDuration = (ms: number): string => print(ms, durations)
