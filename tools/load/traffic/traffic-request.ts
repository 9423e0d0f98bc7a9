// One request of a traffic file, and its JSON line. Files are sorted by arrival, and have key ids but no keys.

import { isoOf, parseInstant, utcDayMs } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { escapedJson, quoted } from 'abohawa/common/outside-text.ts'

/** The cache result of a request; `none` without weather. */
export const outcomes = ['hit', 'stale', 'miss', 'none'] as const
export type Outcome = (typeof outcomes)[number]

/** The recorded response, as far as it is known. */
type RecordedAnswer = {
  readonly status?: number
  readonly outcome?: Outcome
  /** Where the weather came from: `memory`, `redis`, `embedded` or `provider`. */
  readonly tier?: string
  readonly cell?: string
  /** Of the body, as sent. */
  readonly bytes?: number
  /** The duration of the response in ms. */
  readonly ms?: number
}

export type TrafficRequest = RecordedAnswer & {
  /** When it arrived, ms since the epoch. */
  readonly at: number
  readonly method: string
  /** Path and query as sent, without host. */
  readonly path: string
  /** The id of the key; absent for a request without one. */
  readonly key?: string
  /** The header `accept-encoding`. */
  readonly accepts?: string
  /** Whether it had `if-none-match` or `if-modified-since`. */
  readonly conditional?: boolean
}

/** Its line without a line break; equal requests give equal lines. */
export const lineOf = (request: TrafficRequest): string => {
  const { at, method, path, key, accepts, conditional } = request
  const { status, outcome, tier, cell, bytes, ms } = request
  const sent = { at: isoText(at), method, path, key, accepts, conditional }
  const json = JSON.stringify({ ...sent, status, outcome, tier, cell, bytes, ms })
  // Most lines need no escape, and the check is cheap.
  return ascii.test(json) ? json : escapedJson(json)
}

const ascii = /^[\x20-\x7e]*$/

let lastInstant = Number.NaN
let lastText = ''

/** Keeps the last text, because neighbours share a millisecond. */
const isoText = (at: number): string => {
  if (at !== lastInstant) {
    lastText = isoOf(at)
    lastInstant = at
  }
  return lastText
}

/** Whether the instant is plausible; others are mistaken numbers. */
export const isInstant = (ms: number): boolean => ms >= firstInstant && ms < tooLate
const firstInstant = Date.UTC(2000)
const tooLate = Date.UTC(2100)
export const expectedInstant = 'an instant such as "2026-11-21T06:00:00.000Z", from 2000 to 2099'

type Kind = { readonly expected: string; readonly holds: (value: unknown) => boolean }

const isText = (most: number) => (value: unknown) =>
  typeof value === 'string' && value.length > 0 && value.length <= most
const isLike = (form: RegExp) => (value: unknown) => typeof value === 'string' && form.test(value)
const isoInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

// Methods and header values are sent as they are, so they must not contain line breaks.
const kinds = {
  at: {
    expected: expectedInstant,
    holds: value => typeof value === 'string' && isoInstant.test(value) && isInstant(parseInstant(value)),
  },
  method: { expected: 'a method such as "GET"', holds: isLike(/^[A-Z]{1,20}$/) },
  path: {
    expected: 'a path such as "/api/v1/weather/district/3026", of up to 8000 characters without blanks',
    holds: isLike(/^\/[\x21-\x7e]{0,7999}$/),
  },
  key: { expected: 'the id of a key, of up to 200 characters', holds: isText(200) },
  accepts: {
    expected: 'a value of accept-encoding, of up to 200 characters',
    holds: isLike(/^[\x20-\x7e]{0,200}$/),
  },
  conditional: { expected: 'true or false', holds: value => typeof value === 'boolean' },
  status: {
    expected: 'a status from 100 to 599',
    holds: value => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 599,
  },
  outcome: {
    expected: outcomes.map(outcome => `"${outcome}"`).join(', '),
    holds: value => outcomes.some(outcome => outcome === value),
  },
  tier: { expected: 'the name of a tier, of up to 40 characters', holds: isText(40) },
  cell: { expected: 'the name of a cell, of up to 60 characters', holds: isText(60) },
  bytes: {
    expected: 'a number of bytes',
    holds: value => typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER,
  },
  ms: {
    expected: 'a number of milliseconds, less than a day',
    holds: value => typeof value === 'number' && value >= 0 && value < utcDayMs,
  },
} satisfies Record<keyof TrafficRequest, Kind>
const names = Object.keys(kinds) as (keyof TrafficRequest)[]
const required: readonly string[] = ['at', 'method', 'path']

/** The value if it is valid for this field, else undefined. */
export const heldAs = <Name extends keyof TrafficRequest>(
  name: Name,
  value: unknown,
): TrafficRequest[Name] | undefined =>
  kinds[name].holds(value) ? (value as TrafficRequest[Name]) : undefined

/** @throws InputError for an invalid value */
export const checkField = (name: keyof TrafficRequest, value: unknown): void => {
  const { expected, holds } = kinds[name]
  if (!holds(value)) throw new InputError(`${name} is ${givenText(value)}, expected ${expected}`)
}

/** A JSON value for a sentence; nested values are only named, because they may be deep. */
export const givenText = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value)
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  return value instanceof Object ? 'an object' : String(value)
}

/** The request of a line; unknown fields are ignored. @throws InputError without the line number */
export const requestOf = (line: string): TrafficRequest => {
  let fields: Record<string, unknown>
  try {
    fields = JSON.parse(line)
  } catch {
    throw new InputError(`${quoted(line)} is not JSON`)
  }
  if (!(fields instanceof Object) || Array.isArray(fields))
    throw new InputError(`${quoted(line)} is not a JSON object`)
  const request: Record<string, unknown> = { at: 0 }
  for (const name of names) {
    const value = fields[name] ?? undefined
    if (value === undefined && !required.includes(name)) continue
    checkField(name, value)
    request[name] = value
  }
  request.at = Date.parse(request.at as string)
  return request as TrafficRequest
}
