// CORS: lets the web pages of `server.cors.origins` read the responses, by headers on every response and on the answer to a
// preflight. Counts nothing, and refuses no request but a preflight.

import { LRUCache } from 'lru-cache'

export type Cors = {
  /** The header lines of a response to a request from this origin, each with its CRLF. */
  lines(origin: string | undefined): string
  /** The same by name. */
  fields(origin: string | undefined): Readonly<Record<string, string>>
  /** The headers of the answer to a preflight request; undefined where the origin is not listed. */
  preflight(origin: string | undefined): Readonly<Record<string, string>> | undefined
}

// The headers that a page can't read without permission, unlike cache-control, content-language and last-modified.
const exposed = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit-policy',
  'ratelimit',
  'retry-after',
  'etag',
  'x-request-id',
  'cache-status',
  'link',
  'date',
].join(', ')

const preflightFields = {
  'access-control-allow-methods': 'GET, HEAD',
  // The headers that the API reads, and those of clients and tracers: a browser stops a request with any other header.
  'access-control-allow-headers': [
    ...['x-api-key', 'x-request-id', 'if-none-match', 'traceparent', 'tracestate'],
    // Firefox and Safari let a page set user-agent.
    ...['content-type', 'cache-control', 'pragma', 'baggage', 'sentry-trace', 'user-agent'],
  ].join(', '),
  // A day; browsers shorten it to what they allow.
  'access-control-max-age': '86400',
}

type Fields = Readonly<Record<string, string>>

/** @param origins each `https://host`, `https://*.host` or `*`; undefined is returned where there are none */
export const createCors = (origins: readonly string[]): Cors | undefined => {
  if (origins.length === 0) return undefined
  const isAny = origins.includes('*')
  // A response for one origin is not one for another.
  const varied: Fields = isAny ? {} : { vary: 'origin' }
  const allowedFor = (value: string) => ({
    lines: linesOf({ ...varied, ...allow(value), ...expose }),
    fields: { ...varied, ...allow(value), ...expose },
    preflight: { ...varied, ...allow(value), ...preflightFields },
  })
  const nobody = { lines: linesOf(varied), fields: varied, preflight: varied }
  const byOrigin = new Map(origins.map(origin => [origin, allowedFor(origin)]))
  const any = byOrigin.get('*')
  const starred = origins.filter(origin => origin.includes('://*.')).map(origin => origin.split('*', 2))
  const matched = new LRUCache<string, ReturnType<typeof allowedFor>>({ max: 500 })
  // Only what the configuration holds is ever written, and labels in place of its stars.
  const withStar = (origin: string) => {
    const known = matched.get(origin)
    if (known) return known
    const isMatch = starred.some(
      ([before = '', after = '']) =>
        origin.startsWith(before) &&
        origin.endsWith(after) &&
        label.test(origin.slice(before.length, origin.length - after.length)),
    )
    if (!isMatch) return undefined
    const allowed = allowedFor(origin)
    matched.set(origin, allowed)
    return allowed
  }
  const given = (origin = '') =>
    any ?? byOrigin.get(origin) ?? (starred.length > 0 ? withStar(origin) : undefined)
  return {
    lines: origin => (given(origin) ?? nobody).lines,
    fields: origin => (given(origin) ?? nobody).fields,
    preflight: origin => (origin === undefined ? (any ?? nobody) : given(origin))?.preflight,
  }
}

const label = /^[a-z0-9_-]{1,63}$/

const allow = (origin: string): Fields => ({ 'access-control-allow-origin': origin })
const expose: Fields = { 'access-control-expose-headers': exposed }

const linesOf = (fields: Fields): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
