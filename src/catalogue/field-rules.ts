// The rules of each field of a place. All rules of a row run, so that one fault does not hide another.

import { isPrintable, quoted, safeText } from '../common/outside-text.ts'
import { usualSpelling } from './bengali-spelling.ts'
import { type Bounds, type Field, isLocationType, locationTypes } from './location-schema.ts'
import { fold } from './search.ts'

/** Returns the message of a fault, or undefined. */
export type Rule = (value: unknown) => string | undefined

const longest = 60

/** Formats a value for a message: text is quoted, and a long value is cut. */
export const show = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value, longest)
  return value === undefined ? 'nothing' : safeText(JSON.stringify(value) ?? String(value), longest)
}

/** The message of a fault: what is allowed, what was given, and why that is wrong if it is not clear. */
export const refusal = (value: unknown, allowed: string, because = ''): string =>
  `must be ${allowed}, got ${show(value)}${because === '' ? '' : `, ${because}`}`

const must =
  (allowed: string, holds: (value: unknown) => boolean): Rule =>
  value =>
    holds(value) ? undefined : refusal(value, allowed)

const text = (allowed: string, holds: (value: string) => boolean): Rule =>
  must(allowed, value => typeof value === 'string' && holds(value))

const numberWithin = (low: number, high: number): Rule =>
  must(`a number from ${low} to ${high}`, value => typeof value === 'number' && value >= low && value <= high)

const codePoints = (text: string): string =>
  [...text].map(sign => `U+${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`).join(' ')

// Shows the code points of the first letter that is spelled otherwise, because both forms look alike.
const spelledAsUsual: Rule = value => {
  if (typeof value !== 'string' || value === usualSpelling(value)) return undefined
  const cluster = value.match(/[^\p{M}]?(?:[\p{M}:]|\u200d)*/gu)?.find(part => part !== usualSpelling(part))
  const because = cluster === undefined ? '' : `with ${codePoints(cluster)} in it`
  const allowed = `its usual spelling in Unicode NFC, ${codePoints(usualSpelling(cluster ?? value))}`
  return refusal(value, allowed, because)
}

// A fast path: most aliases and addresses match, and plain text keeps every rule of text.
const plainText = /^[!-~]+(?: [!-~]+)*$/

const printable = must(
  'text without control characters',
  value => typeof value !== 'string' || isPrintable(value),
)

/** The rules of a name. */
export const nameRules: readonly Rule[] = [
  text('a name of at least one letter', name => name.trim() !== ''),
  printable,
  must(
    'text without blanks at either end',
    value => typeof value !== 'string' || value.trim() === '' || value === value.trim(),
  ),
  spelledAsUsual,
]

const isWebsite = (value: string): boolean => /^https?:\/\/\S+$/u.test(value) && URL.canParse(value)

const digits = /^[1-9][0-9]{0,14}$/u
/** The rule of an id. */
export const idRule = text('decimal digits without a leading zero, 15 at most', id => digits.test(id))
const parentRule = must(
  'the id of a place (decimal digits) or none',
  value => value === null || (typeof value === 'string' && digits.test(value)),
)
const basisRule = text('a word of a-z, 0-9 and -', basis => /^[a-z0-9-]+$/u.test(basis))

const firstMessage = (rules: readonly Rule[], value: unknown): string | undefined => {
  for (const rule of rules) {
    const message = rule(value)
    if (message !== undefined) return message
  }
  return undefined
}

// Skips the rules for plain text, which keeps them all.
const unlessPlain =
  (rules: readonly Rule[]): Rule =>
  value =>
    typeof value === 'string' && plainText.test(value) ? undefined : firstMessage(rules, value)

const listRule =
  (allowed: string, itemRule: Rule, keyOf: (item: unknown) => string): Rule =>
  value => {
    if (!Array.isArray(value) || value.length === 0) return refusal(value, `a list of ${allowed}, or nothing`)
    const seen = new Set<unknown>()
    for (const item of value) {
      const message = itemRule(item)
      if (message !== undefined) return message
      const key = keyOf(item)
      if (seen.has(key)) return refusal(item, 'unique', 'twice')
      seen.add(key)
    }
    return undefined
  }

const dayMonthOrYear = /^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$/u

/** The rule of a date whose day, or month and day, may be missing. */
export const dateRule = text('a date as YYYY-MM-DD, YYYY-MM or YYYY', date => dayMonthOrYear.test(date))

const formerIdRule: Rule = value => {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  if (!keys.includes('id') || keys.some(key => key !== 'id' && key !== 'until'))
    return refusal(value, 'an object with id and, where it is known, until')
  const { id, until } = value as { id: unknown; until?: unknown }
  return idRule(id) ?? (until === undefined ? undefined : dateRule(until))
}

/** The rules of every field, for places within the given box. */
export const rulesWithin = (bounds: Bounds): Readonly<Record<Field, readonly Rule[]>> => ({
  id: [idRule],
  type: [must(`one of ${locationTypes.join(', ')}`, isLocationType)],
  parentId: [parentRule],
  name_en: nameRules,
  name_bn: nameRules,
  slug_en: [text('at least one of a-z, 0-9 and -', slug => /^[a-z0-9-]+$/u.test(slug)), spelledAsUsual],
  aliases: [listRule('names', unlessPlain(nameRules), alias => fold(String(alias)))],
  formerIds: [listRule('former ids', formerIdRule, former => (former as { id: string }).id)],
  latitude: [numberWithin(bounds.south, bounds.north)],
  longitude: [numberWithin(bounds.west, bounds.east)],
  area_sq_km: [must('a number, 0 or more', value => typeof value === 'number' && value >= 0)],
  population: [must('a whole number, 0 or more', value => Number.isSafeInteger(value) && Number(value) >= 0)],
  population_basis: [basisRule],
  coordinates_basis: [basisRule],
  name_bn_basis: [basisRule],
  website: [
    must(
      'an http or https address or none',
      value => value === null || (typeof value === 'string' && isWebsite(value)),
    ),
    unlessPlain([printable]),
  ],
  published: [must('true, false or nothing', value => value === undefined || typeof value === 'boolean')],
})
