// Parts of requests from the text of logs, in the form of a traffic file: path, instant, duration, cache result.

import { parseInstant, utcDayMs } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import {
  checkField,
  expectedInstant,
  givenText,
  heldAs,
  isInstant,
  type TrafficRequest,
} from './traffic-request.ts'

/** The parts that are not undefined. */
export const known = <Parts extends object>(parts: Parts): Known<Parts> => {
  const found: Record<string, unknown> = {}
  for (const name in parts) if (parts[name] !== undefined) found[name] = parts[name]
  return found as Known<Parts>
}
type Known<Parts> = { [Name in keyof Parts as undefined extends Parts[Name] ? never : Name]: Parts[Name] } & {
  [Name in keyof Parts as undefined extends Parts[Name] ? Name : never]?: Exclude<Parts[Name], undefined>
}

const longestPath = 8_000

/** @throws InputError */
export const methodOf = (value: unknown): string => {
  checkField('method', value)
  return value as string
}

/** Path and query of a path or URL, percent-encoded to printable ASCII. @throws InputError */
export const pathOf = (value: unknown): string => {
  if (typeof value !== 'string')
    throw new InputError(
      `the path is ${givenText(value)}, expected one such as "/api/v1/weather/district/3026"`,
    )
  const sent = value.startsWith('/') ? value : value.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  // Encoding never shortens a text.
  const path = sent.length > longestPath ? '' : asciiOf(sent)
  const begun = path.startsWith('/') ? path : path === '' || path.startsWith('?') ? `/${path}` : undefined
  if (begun === undefined || Math.max(sent.length, begun.length) > longestPath)
    throw new InputError(
      `the path is ${quoted(value)}, expected one such as "/api/v1/weather/district/3026", of up to ${longestPath} characters`,
    )
  return ownText(begun)
}

/** A copy that does not keep the longer text in memory. */
export const ownText = (text: string): string => Buffer.from(text).toString()

const ascii = /^[\x21-\x7e]*$/

const asciiOf = (text: string): string =>
  ascii.test(text)
    ? text
    : text.replaceAll(/[^\x21-\x7e]+/gu, part =>
        Buffer.from(part).toString('hex').toUpperCase().replaceAll(/../g, '%$&'),
      )

/** In ms; undefined for an invalid number. @throws InputError for a day or longer, which is no duration */
export const durationOf = (value: unknown): number | undefined => {
  if (typeof value !== 'number' || !(value >= 0)) return undefined
  if (value < utcDayMs) return value
  throw new InputError(`the duration is ${value} ms, expected less than a day`)
}

/** In ms since the epoch; UTC without a zone. @throws InputError */
export const instantOf = (value: unknown, name: string): number => {
  const instant = typeof value === 'string' ? parseInstant(value) : Number.NaN
  if (isInstant(instant)) return instant
  throw new InputError(`${name} is ${givenText(value)}, expected ${expectedInstant}`)
}

type Headers = Readonly<Record<string, string>>

/** Key, encodings and condition in the headers of a request. @param headers named in lower case */
export const sentIn = (headers: Headers, nameOf: (secret: string) => string) => {
  const key = headers['x-api-key'] || headers.authorization?.replace(/^(?:bearer|basic)\s+/i, '')
  const accepts = heldAs('accepts', headers['accept-encoding'])
  const isConditional = 'if-none-match' in headers || 'if-modified-since' in headers
  return {
    key: key ? nameOf(key) : undefined,
    accepts: accepts === undefined ? undefined : ownText(accepts),
    conditional: isConditional || undefined,
  }
}

/**
 * The cache result in `cache-status`; without it, a response without weather. A negative ttl is stale.
 */
export const recordedOutcome = (
  status: string | undefined,
): Pick<TrafficRequest, 'outcome' | 'tier' | 'cell'> => {
  if (status === undefined) return { outcome: 'none' }
  const [, cell] = /key="([\d.,-]{1,60})"/.exec(status) ?? []
  if (status.includes('fwd=miss')) return known({ outcome: 'miss' as const, tier: 'provider', cell })
  // A list of places without any weather.
  if (!/\b(?:hit|fwd)\b/.test(status)) return { outcome: 'none' }
  const outcome = status.includes('fwd=stale') || status.includes('ttl=-') ? 'stale' : 'hit'
  const [, tier] = /detail=(\w{1,40})/.exec(status) ?? []
  return known({ outcome, tier, cell } as const)
}
