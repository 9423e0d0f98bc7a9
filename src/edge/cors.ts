// CORS: lets the web pages of `server.cors.origins` read the responses, by headers on every response and on the answer to a
// preflight. Admits and counts nothing.

export type Cors = {
  /** The header lines of a response to a request from this origin, each with its CRLF. */
  lines(origin: string | undefined): string
  /** The same by name. */
  fields(origin: string | undefined): Readonly<Record<string, string>>
  /** The headers of the answer to a preflight request. */
  preflight(origin: string | undefined): Readonly<Record<string, string>>
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
    ...['content-type', 'cache-control', 'pragma', 'baggage', 'sentry-trace'],
  ].join(', '),
  // A day; browsers shorten it to what they allow.
  'access-control-max-age': '86400',
}

type Fields = Readonly<Record<string, string>>

/** @param origins each `https://host` or `*`; undefined is returned where there are none */
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
  const others = { lines: linesOf(varied), fields: varied, preflight: varied }
  // Only what the configuration holds is ever written: the header of a request is looked up and not repeated.
  const byOrigin = new Map(origins.map(origin => [origin, allowedFor(origin)]))
  const any = byOrigin.get('*')
  const given = (origin: string | undefined) => any ?? byOrigin.get(origin ?? '') ?? others
  return {
    lines: origin => given(origin).lines,
    fields: origin => given(origin).fields,
    preflight: origin => given(origin).preflight,
  }
}

const allow = (origin: string): Fields => ({ 'access-control-allow-origin': origin })
const expose: Fields = { 'access-control-expose-headers': exposed }

const linesOf = (fields: Fields): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
