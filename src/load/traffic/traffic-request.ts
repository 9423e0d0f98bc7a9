// One request of a traffic file, and its line of JSON. A file is such lines, by the instant of arrival; it holds ids of keys
// and never a key. Reading files and other formats is left to the readers beside this file.

import { isoOf, parseInstant } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import { escapedJson, quoted } from '../../common/outside-text.ts'
import { amountOf, expectedInstant, givenText, isDuration, isInstant } from './request-line.ts'

/** The cache result of a request: `none` for answers without weather. */
export const outcomes = ['hit', 'stale', 'miss', 'none'] as const
export type Outcome = (typeof outcomes)[number]

/** How a request was answered when it was recorded; each part only where it is known. */
type RecordedAnswer = {
  readonly status?: number
  readonly outcome?: Outcome
  /** Where the weather came from: `memory`, `redis`, `embedded` or `provider`. */
  readonly tier?: string
  readonly cell?: string
  /** Of the body as it was sent. */
  readonly bytes?: number
  /** How long the answer took, in milliseconds. */
  readonly ms?: number
}

export type TrafficRequest = RecordedAnswer & {
  /** When it arrived, ms since the epoch. */
  readonly at: number
  readonly method: string
  /** Path and query as they were sent, without host. */
  readonly path: string
  /** The id of the key; absent for a request without one. */
  readonly key?: string
  /** The header `accept-encoding`; absent for a request without it. */
  readonly accepts?: string
  /** Whether the client asked for the body only if it had changed. */
  readonly conditional?: boolean
}

/** Its line, without a line break: always the same text for the same request. */
export const lineOf = ({
  at,
  method,
  path,
  key,
  accepts,
  conditional,
  ...answer
}: TrafficRequest): string => {
  const { status, outcome, tier, cell, bytes, ms } = answer
  const json = JSON.stringify({
    at: isoText(at),
    method,
    path,
    key,
    accepts,
    conditional,
    status,
    outcome,
    tier,
    cell,
    bytes,
    ms,
  })
  // Most lines need no escape, and a check is cheaper than writing every character anew.
  return ascii.test(json) ? json : escapedJson(json)
}

const ascii = /^[\x20-\x7e]*$/

let lastInstant = Number.NaN
let lastText = ''

/** Made once for neighbours of one millisecond. */
const isoText = (at: number): string => {
  if (at !== lastInstant) {
    lastText = isoOf(at)
    lastInstant = at
  }
  return lastText
}

type Kind = {
  readonly expected: string
  readonly holds: (value: unknown) => boolean
  readonly required?: true
}

const isText = (most: number) => (value: unknown) =>
  typeof value === 'string' && value.length > 0 && value.length <= most

// Methods and header values stand in a request as they are: neither may hold what would end their line.
const kinds: Readonly<Record<string, Kind>> = {
  at: {
    expected: expectedInstant,
    holds: value => typeof value === 'string' && isoInstant.test(value) && isInstant(parseInstant(value)),
    required: true,
  },
  method: {
    expected: 'a method such as "GET"',
    holds: value => typeof value === 'string' && /^[A-Z]{1,20}$/.test(value),
    required: true,
  },
  path: {
    expected: 'a path such as "/api/v1/weather/district/3026", of up to 8000 characters without blanks',
    holds: value => typeof value === 'string' && /^\/[\x21-\x7e]{0,7999}$/.test(value),
    required: true,
  },
  key: { expected: 'the id of a key, of up to 200 characters', holds: isText(200) },
  accepts: {
    expected: 'a value of accept-encoding, of up to 200 characters',
    holds: value => typeof value === 'string' && /^[\x20-\x7e]{0,200}$/.test(value),
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
  bytes: { expected: 'a number of bytes', holds: value => amountOf(value) !== undefined },
  ms: {
    expected: 'a number of milliseconds, less than a day',
    holds: value => typeof value === 'number' && isDuration(value),
  },
}
const names = Object.keys(kinds)
const kindList = Object.values(kinds)
const isoInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** The request of a line. Fields that are not known are ignored. @throws InputError with what is wrong, without the line's number */
export const requestOf = (line: string): TrafficRequest => {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    throw new InputError(`${quoted(line)} is no JSON`)
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new InputError(`${quoted(line)} is no JSON object`)
  const request: Record<string, unknown> = { at: 0 }
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    const { expected, holds, required } = kindList[i] as Kind
    const value = (fields as Record<string, unknown>)[name]
    if (value === undefined || value === null) {
      if (required) throw new InputError(`${name} is missing: expected ${expected}`)
      continue
    }
    if (!holds(value))
      throw new InputError(
        `${name} is ${value instanceof Object ? givenText(value) : quoted(JSON.stringify(value))}, expected ${expected}`,
      )
    request[name] = value
  }
  request.at = Date.parse(request.at as string)
  return request as TrafficRequest
}
