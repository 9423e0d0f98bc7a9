// CORS: lets the web pages of `server.cors.origins` read the responses, by headers on every response and on the answer to a preflight.

import { LRUCache } from 'lru-cache'
import { createStarMatch, isStarred } from '../common/web-origin.ts'
import type { Client } from '../keys/authentication.ts'

export type Cors = {
  /** The header lines of a response to a request from this origin, each with its CRLF. */
  lines(origin: string | undefined, client: Pick<Client, 'restrictedBy'> | null): string
  /** Whether the pages of this origin may read responses. */
  allows(origin: string | undefined): boolean
}

// The headers that a page can't read without permission, unlike cache-control, content-language and last-modified.
const exposed =
  'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-ratelimit-cost, ratelimit-policy, ratelimit, ' +
  'retry-after, etag, x-request-id, cache-status, link, x-key-expires, x-test-data, content-location, date'

// The headers that the API reads, and those that clients and tracers add: a browser stops a request with any other. Firefox and Safari
// let a page set user-agent; the axios of Laravel sends x-requested-with.
const accepted =
  'x-api-key, x-request-id, if-none-match, x-test-error, traceparent, tracestate, ' +
  'content-type, cache-control, pragma, baggage, sentry-trace, user-agent, x-requested-with'

/** The further header lines of the answer to a preflight request. Browsers shorten the day to what they allow. */
export const preflightLines = `access-control-allow-methods: GET, HEAD\r\naccess-control-allow-headers: ${accepted}\r\naccess-control-max-age: 86400\r\n`

/** @param origins each `https://host`, `https://*.host` or `*`; undefined is returned where there are none */
export const createCors = (origins: readonly string[]): Cors | undefined => {
  if (origins.length === 0) return undefined
  if (origins.includes('*')) return openToAll()
  // A response for one origin is not one for another.
  const linesFor = (origin: string): string => varied + allowing(origin)
  const linesOf = new Map(origins.map(origin => [origin, linesFor(origin)]))
  const starred = origins.filter(isStarred)
  const matchesStar = createStarMatch(starred)
  const matched = new LRUCache<string, string>({ max: 500 })
  // Only configured origins are written, with a label for the star.
  const withStar = (origin: string): string | undefined => {
    const known = matched.get(origin)
    if (known !== undefined) return known
    if (!matchesStar(origin)) return undefined
    const lines = linesFor(origin)
    matched.set(origin, lines)
    return lines
  }
  const given = (origin = ''): string | undefined =>
    linesOf.get(origin) ?? (starred.length > 0 ? withStar(origin) : undefined)
  return {
    lines: origin => given(origin) ?? varied,
    allows: origin => given(origin) !== undefined,
  }
}

/** Every origin may read. A response is the same for all, unless its key is bound to some. */
const openToAll = (): Cors => {
  const lines = allowing('*')
  const linesOfBound = varied + lines
  return {
    lines: (_origin, client) =>
      client?.restrictedBy === undefined || client.restrictedBy.restrictions.origins === null
        ? lines
        : linesOfBound,
    allows: () => true,
  }
}

const varied = 'vary: origin\r\n'
const allowing = (origin: string): string =>
  `access-control-allow-origin: ${origin}\r\naccess-control-expose-headers: ${exposed}\r\n`
