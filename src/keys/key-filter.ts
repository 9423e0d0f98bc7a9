// Filters keys by terms such as `tier=starter status=active expires<30d`. A term is a field, an operator and a value; all
// terms must hold.

import { type Calendar, dayNumber, utcDayMs } from '../common/calendar.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import { isDay, parseDuration } from './key-expiry.ts'
import type { KeyUsage, ListedKey } from './listed-key.ts'
import { foldName, nameForm } from './name-forms.ts'

export type KeyFilter = {
  /** Checks a key without its usage: the usage of a key that fails need not be read. */
  mayMatch(key: ListedKey): boolean
  matches(key: ListedKey & KeyUsage): boolean
}

/** `onUsage`: it looks at the usage, and needs it read. */
type Term = { readonly onUsage: boolean; readonly matches: (key: ListedKey & KeyUsage) => boolean }

const noUsage: KeyUsage = { lastUsedOn: null, usedToday: 0 }
const longestFilter = 500
const operators = ['=~', '!=', '<=', '>=', '=', '<', '>'] as const
type Operator = (typeof operators)[number]
const statuses = ['active', 'expired', 'revoked', 'subscriber-revoked', 'subscriber-missing']
const example = 'such as tier=starter status=active subscriber=~Dhaka used=0 expires<30d'

/** @throws InputError that names the term */
export const keyFilterIn = (given: string, calendar: Calendar, now: number): KeyFilter => {
  if (given.length > longestFilter)
    throw new InputError(`the filter must have at most ${longestFilter} characters, got ${given.length}`)
  const terms = wordsIn(given).map(word => termIn(word, calendar, now))
  return {
    mayMatch: key => terms.every(term => term.onUsage || term.matches({ ...key, ...noUsage })),
    matches: key => terms.every(({ matches }) => matches(key)),
  }
}

/** Words between blanks; a quoted value may have blanks. */
const wordsIn = (given: string): string[] => given.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []

const termIn = (word: string, calendar: Calendar, now: number): Term => {
  const [, field = '', operator = '', value = ''] = /^(\w+)(=~|!=|<=|>=|=|<|>)(.+)$/s.exec(word) ?? []
  const bare = value.replace(/^"([^"]*)"$/, '$1')
  const read = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (!read)
    throw new InputError(
      `the filter has ${quoted(word)}, but a term is a field (${Object.keys(fields).join(', ')}), an operator (${operators.join(' ')}) and a value, ${example}`,
    )
  const wrong = (form: string) => new InputError(`the filter has ${quoted(word)}, but ${field} takes ${form}`)
  return read({ operator: operator as Operator, value: bare, wrong, calendar, now })
}

type Given = {
  readonly operator: Operator
  readonly value: string
  /** @param form the operators and values that the field takes */
  readonly wrong: (form: string) => InputError
  readonly calendar: Calendar
  readonly now: number
}

const ofKey = (matches: Term['matches']): Term => ({ onUsage: false, matches })
const ofUsage = (matches: Term['matches']): Term => ({ onUsage: true, matches })

/** `none` matches a missing text. */
const textTerm =
  (textOf: (key: ListedKey) => string | null) =>
  ({ operator, value, wrong }: Given): Term => {
    const text = value === 'none' ? null : nameForm(value)
    if (operator === '=') return ofKey(key => textOf(key) === text)
    if (operator === '!=') return ofKey(key => textOf(key) !== text)
    if (operator === '=~') return ofKey(key => foldName(textOf(key) ?? '').includes(foldName(value)))
    throw wrong('= (is), != (is not) or =~ (contains this text, in any letter case)')
  }

const statusTerm = ({ operator, value, wrong }: Given): Term => {
  if ((operator !== '=' && operator !== '!=') || !statuses.includes(value))
    throw wrong(`= or != and one of ${statuses.join(', ')}`)
  return ofKey(({ status }) => (status.replace(' ', '-') === value) === (operator === '='))
}

const compares: Readonly<Record<Exclude<Operator, '=~'>, (one: number, other: number) => boolean>> = {
  '=': (one, other) => one === other,
  '!=': (one, other) => one !== other,
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
}

/** Null matches nothing. */
const numberIn = (
  { operator, value, wrong }: Given,
  numberOf: (key: ListedKey & KeyUsage) => number | null,
): Term['matches'] => {
  if (operator === '=~' || !/^\d{1,15}$/.test(value)) throw wrong('an integer, and any operator but =~')
  return key => {
    const number = numberOf(key)
    return number !== null && compares[operator](number, Number(value))
  }
}

type TimeOf = {
  /** The local day as a number, and the ms until it; both infinite where there is none. */
  readonly day: (key: ListedKey & KeyUsage) => number
  readonly away: (key: ListedKey & KeyUsage) => number
}

/** Compares days as days, and durations with the time until an instant. */
const timeIn = ({ operator, value, wrong }: Given, { day, away }: TimeOf): Term['matches'] => {
  const duration = parseDuration(value)
  if (value === 'never' && (operator === '=' || operator === '!='))
    return key => Number.isFinite(day(key)) === (operator === '!=')
  if (operator !== '=~' && duration !== undefined) return key => compares[operator](away(key), duration)
  if (operator !== '=~' && isDay(value)) return key => compares[operator](day(key), dayNumber(value))
  throw wrong('a day such as 2027-01-31 or a duration such as 30d, and any operator but =~; or =never')
}

const expiresTerm = (given: Given): Term => {
  const at = ({ expiresAt }: ListedKey) =>
    expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
  return ofKey(
    timeIn(given, {
      // The end of a day is the first instant of the next one.
      day: key => (key.expiresAt === null ? at(key) : dayNumber(given.calendar.dayOf(at(key) - 1))),
      away: key => at(key) - given.now,
    }),
  )
}

const createdTerm = (given: Given): Term =>
  ofKey(
    timeIn(given, {
      day: ({ createdAt }) => dayNumber(given.calendar.dayOf(Date.parse(createdAt))),
      away: ({ createdAt }) => given.now - Date.parse(createdAt),
    }),
  )

const lastUsedTerm = (given: Given): Term => {
  const today = dayNumber(given.calendar.dayOf(given.now))
  const dayOf = ({ lastUsedOn }: KeyUsage): number =>
    lastUsedOn === null ? Number.NEGATIVE_INFINITY : dayNumber(lastUsedOn)
  return ofUsage(timeIn(given, { day: dayOf, away: key => (today - dayOf(key)) * utcDayMs }))
}

const fields: Readonly<Record<string, (given: Given) => Term>> = {
  id: textTerm(key => key.id),
  external_id: textTerm(key => key.externalId),
  subscriber: textTerm(key => key.subscriber),
  tier: textTerm(key => key.tier),
  status: statusTerm,
  limit: given => ofKey(numberIn(given, key => key.limit)),
  created: createdTerm,
  expires: expiresTerm,
  used: given => ofUsage(numberIn(given, key => key.usedToday)),
  last_used: lastUsedTerm,
}
