// The parts of a request out of the text of a log, in the form that a traffic file holds: a path without a host and in ASCII,
// instants, durations, the cache result.

import { parseInstant, utcDayMs } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'

const longestPath = 8_000

/** @throws InputError */
export const methodOf = (value: unknown): string => {
  if (typeof value === 'string' && /^[A-Z]{1,20}$/.test(value)) return value
  throw new InputError(`method is ${givenText(value)}, expected a method such as "GET"`)
}

/** Path and query of a path or URL; what is not printable in ASCII is percent-encoded. @throws InputError */
export const pathOf = (value: unknown): string => {
  if (typeof value !== 'string')
    throw new InputError(
      `the path is ${givenText(value)}, expected one such as "/api/v1/weather/district/3026"`,
    )
  const sent = value.startsWith('/') ? value : value.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  // No sign becomes shorter, so that what is too long already is not encoded.
  const path = sent.length > longestPath ? '' : asciiOf(sent)
  const begun = path.startsWith('/') ? path : path === '' || path.startsWith('?') ? `/${path}` : undefined
  if (begun === undefined || Math.max(sent.length, begun.length) > longestPath)
    throw new InputError(
      `the path is ${quoted(value)}, expected one such as "/api/v1/weather/district/3026", of up to ${longestPath} characters`,
    )
  return ownText(begun)
}

/** The same text, which does not keep alive the long text that it was cut from. */
export const ownText = (text: string): string => Buffer.from(text).toString()

/** A value of JSON for a sentence; what is nested is named and never walked through, however deep it is. */
export const givenText = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value)
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  return value instanceof Object ? 'an object' : String(value)
}

/** A number of bytes that a traffic file can hold; undefined for anything else. */
export const amountOf = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined

export const isStatus = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599

const ascii = /^[\x21-\x7e]*$/

const asciiOf = (text: string): string =>
  ascii.test(text)
    ? text
    : text.replaceAll(/[^\x21-\x7e]+/gu, part =>
        Buffer.from(part).toString('hex').toUpperCase().replaceAll(/../g, '%$&'),
      )

/** In ms; undefined for what is no number of them. @throws InputError for a day and longer, which is another figure */
export const durationOf = (value: unknown): number | undefined => {
  if (typeof value !== 'number' || !(value >= 0)) return undefined
  if (isDuration(value)) return value
  throw new InputError(`the duration is ${value} ms, expected less than a day`)
}

/** Whether a request may take so many ms. */
export const isDuration = (ms: number): boolean => ms >= 0 && ms < utcDayMs

/** In ms since the epoch; one without a zone is UTC. @throws InputError */
export const instantOf = (value: unknown, name: string): number => {
  const instant = typeof value === 'string' ? parseInstant(value) : Number.NaN
  if (isInstant(instant)) return instant
  throw new InputError(`${name} is ${givenText(value)}, expected ${expectedInstant}`)
}

export const expectedInstant = 'an instant such as "2026-11-21T06:00:00.000Z", from 2000 to 2099'

/** Whether a request may have arrived then: what lies outside is a figure that was taken for an instant. */
export const isInstant = (ms: number): boolean => ms >= firstInstant && ms < tooLate
const firstInstant = Date.UTC(2000)
const tooLate = Date.UTC(2100)

/** The credential of a client: the key of this API, or the token or password of another. */
export const keyIn = (headers: Readonly<Record<string, string>>): string | undefined =>
  headers['x-api-key'] || headers.authorization?.replace(/^(?:bearer|basic)\s+/i, '') || undefined

/** A value of accept-encoding that a traffic file can hold; undefined for another. */
export const acceptsOf = (value: string | undefined): string | undefined =>
  value !== undefined && /^[\x20-\x7e]{0,200}$/.test(value) ? ownText(value) : undefined

/**
 * The cache result in the text of `cache-status` (api/rendered-weather.ts). A negative ttl is that of a stale answer without a
 * load behind it. No text: an answer without weather.
 */
export const recordedOutcome = (
  status: string | undefined,
): { outcome: 'hit' | 'stale' | 'miss' | 'none'; tier?: string; cell?: string } => {
  if (status === undefined) return { outcome: 'none' }
  const cell = /key="([\d.,-]{1,60})"/.exec(status)?.[1]
  const where = cell === undefined ? {} : { cell }
  if (status.includes('fwd=miss')) return { outcome: 'miss', tier: 'provider', ...where }
  const outcome = status.includes('fwd=stale') || status.includes('ttl=-') ? 'stale' : 'hit'
  const tier = /detail=(\w{1,40})/.exec(status)?.[1]
  return tier === undefined ? { outcome, ...where } : { outcome, tier, ...where }
}
