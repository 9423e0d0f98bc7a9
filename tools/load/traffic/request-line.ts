// The parts of a request out of the text of a log, in the form that a traffic file holds: a path without a host and in ASCII,
// instants, durations, the cache result.

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

/** The parts that are known: those that are undefined are left away. */
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
  if (value < utcDayMs) return value
  throw new InputError(`the duration is ${value} ms, expected less than a day`)
}

/** In ms since the epoch; one without a zone is UTC. @throws InputError */
export const instantOf = (value: unknown, name: string): number => {
  const instant = typeof value === 'string' ? parseInstant(value) : Number.NaN
  if (isInstant(instant)) return instant
  throw new InputError(`${name} is ${givenText(value)}, expected ${expectedInstant}`)
}

type Headers = Readonly<Record<string, string>>

/** What the headers of a request say, named in lower case: the credential of a client is the key of this API, or that of another. */
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
 * The cache result in the text of `cache-status` (api/rendered-weather.ts). A negative ttl is that of a stale answer without a
 * load behind it. No text: an answer without weather.
 */
export const recordedOutcome = (
  status: string | undefined,
): Pick<TrafficRequest, 'outcome' | 'tier' | 'cell'> => {
  if (status === undefined) return { outcome: 'none' }
  const [, cell] = /key="([\d.,-]{1,60})"/.exec(status) ?? []
  if (status.includes('fwd=miss')) return known({ outcome: 'miss' as const, tier: 'provider', cell })
  // A list of places of which none has weather.
  if (!/\b(?:hit|fwd)\b/.test(status)) return { outcome: 'none' }
  const outcome = status.includes('fwd=stale') || status.includes('ttl=-') ? 'stale' : 'hit'
  const [, tier] = /detail=(\w{1,40})/.exec(status) ?? []
  return known({ outcome, tier, cell } as const)
}
