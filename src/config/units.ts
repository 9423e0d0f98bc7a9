// Durations and sizes as people write them (`10m`, `2h20m`, `64MiB`) and as the program counts them (milliseconds, bytes).
// A number without its unit is refused, so that nobody has to remember which unit a setting meant.

import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'

type Units = {
  noun: string
  example: string
  base: string
  factors: ReadonlyArray<readonly [name: string, factor: number]>
}

// Each list ascends, and of two names for one factor the one to print comes last.
const durations: Units = {
  noun: 'duration',
  example: '30s',
  base: 'ms',
  factors: [
    ['ms', 1],
    ['s', 1_000],
    ['m', 60_000],
    ['h', 3_600_000],
    ['d', 86_400_000],
  ],
}

const sizes: Units = {
  noun: 'size',
  example: '64MiB',
  base: 'B',
  factors: [
    ['B', 1],
    ['KB', 1_000],
    ['kB', 1_000],
    ['KiB', 1_024],
    ['MB', 1_000_000],
    ['MiB', 1_048_576],
    ['GB', 1_000_000_000],
    ['GiB', 1_073_741_824],
  ],
}

const namesOf = ({ factors }: Units): string[] => factors.map(([name]) => name)

const choiceOf = (units: Units): string =>
  new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(namesOf(units))

const number = '[0-9]+(\\.[0-9]+)?'
const patternOf = (units: Units): RegExp => new RegExp(`^${number}(${namesOf(units).join('|')})$`)

/** Of several parts, each with a smaller unit than the one before. */
const patternOfParts = (units: Units): RegExp => {
  const names = namesOf(units)
  const endingIn = names.map((name, i) => {
    const larger = names.slice(i + 1).reverse()
    return `${larger.map(each => `([0-9]+${each})?`).join('')}${number}${name}`
  })
  return new RegExp(`^(${endingIn.join('|')})$`)
}

const parse = (text: string, units: Units): number => {
  const [, digits, name] = /^([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$/.exec(text) ?? []
  if (digits === undefined || name === undefined)
    throw new InputError(
      `${quoted(text)} is not a ${units.noun}: write a number and its unit (${choiceOf(units)}), such as ${units.example}`,
    )
  if (name === '')
    throw new InputError(`${quoted(text)} has no unit: add ${choiceOf(units)}, as in ${units.example}`)
  const factor = new Map(units.factors).get(name)
  if (factor === undefined)
    throw new InputError(
      `${quoted(text)} has a unit that is not known: a ${units.noun} ends in ${choiceOf(units)}`,
    )
  const value = Math.round(Number(digits) * factor)
  if (!Number.isSafeInteger(value)) throw new InputError(`${quoted(text)} is too large for a ${units.noun}`)
  return value
}

const print = (value: number, { base, factors }: Units): string => {
  const largest = value === 0 ? undefined : factors.findLast(([, unit]) => value % unit === 0)
  const [name, factor] = largest ?? [base, 1]
  return `${value / factor}${name}`
}

/**
 * The form of a duration: a number, with decimals if need be, and one of ms, s, m, h, d; or several of them, the largest first.
 */
export const DURATION_PATTERN = patternOfParts(durations)

/** The form of a size: a number, with decimals if need be, and B or a decimal or binary multiple. */
export const SIZE_PATTERN = patternOf(sizes)

// Of what is looked at for several parts.
const longestText = 100

/** `1.5h` or `1h30m` in whole milliseconds; throws InputError for anything that is not a duration with its unit. */
export const parseDuration = (text: string): number => {
  const parts = text.length > longestText ? [] : (text.match(/[0-9.]+[A-Za-z]+/g) ?? [])
  const [first = ''] = parts
  if (parts.length < 2 || !DURATION_PATTERN.test(first) || parts.join('') !== text)
    return parse(text, durations)
  const ms = parts.reduce((sum, part) => sum + parse(part, durations), 0)
  if (DURATION_PATTERN.test(text) && Number.isSafeInteger(ms)) return ms
  throw new InputError(
    `${quoted(text)} is not a duration: of several parts, each has a smaller unit than the one before and the last alone has decimals, such as 2h20m`,
  )
}

/** `64MiB` in whole bytes; throws InputError for anything that is not a size with its unit. */
export const parseSize = (text: string): number => parse(text, sizes)

/** Milliseconds in the largest unit that divides them: 5400000 is `90m`. */
export const printDuration = (ms: number): string => print(ms, durations)

/** Bytes in the largest unit that divides them: 67108864 is `64MiB`. */
export const printSize = (bytes: number): string => print(bytes, sizes)
