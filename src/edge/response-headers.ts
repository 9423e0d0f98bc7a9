// The header lines that tell a consumer what it got: quota, freshness, where the weather came from. Each ends in CRLF, so
// that a head is put together by joining them. Pure; values are numbers, dates and words of ours, never a consumer's.

import type { Known } from '../answer.ts'

/** The three headers of every response. Seconds of the reset are those of a Unix timestamp. */
export const rateLimitHeaders = (limit: number, remaining: number, resetsAt: number): string =>
  `x-ratelimit-limit: ${limit}\r\nx-ratelimit-remaining: ${remaining}\r\nx-ratelimit-reset: ${Math.floor(resetsAt / 1000)}\r\n`

/** The same by name. */
export const rateLimitFields = (limit: number, remaining: number, resetsAt: number) => ({
  'x-ratelimit-limit': String(limit),
  'x-ratelimit-remaining': String(remaining),
  'x-ratelimit-reset': String(Math.floor(resetsAt / 1000)),
})

/**
 * No `age`: every answer is made for its instant, and caches subtract it from `max-age`.
 * @param rightUntil until when the answer stays right: its slice ends, or its timeline turns stale
 */
export const freshnessHeaders = (from: Known, rightUntil: number): string =>
  `cache-control: private, max-age=${secondsBetween(from.readAt, rightUntil)}\r\n` +
  `last-modified: ${new Date(from.fetchedAt).toUTCString()}\r\n` +
  `cache-status: abohawa; ${cacheWords(from)}; key="${from.cell.id}"\r\n`

/** How the cache dealt with a request, in the words of RFC 9211; the log uses the same. */
export const cacheWords = (
  from: Pick<Known, 'outcome' | 'source' | 'forwarded' | 'collapsed' | 'freshUntil' | 'readAt'>,
): string => {
  const { outcome, source, forwarded, collapsed, freshUntil, readAt } = from
  // Negative for a stale answer.
  const ttl = `ttl=${Math.floor((freshUntil - readAt) / 1000)}`
  const shared = collapsed ? '; collapsed' : ''
  if (outcome === 'miss') return `fwd=miss${shared}; stored; ${ttl}`
  // A stale answer goes out at once. Where a load was asked for behind it the request was forwarded all the same; while
  // the last failure rests nothing was, and it is a hit past its time.
  return `${forwarded ? `fwd=stale${shared}` : 'hit'}; ${ttl}; detail=${source}`
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
