// The header lines that say what the cache did and how long the response is right. Each ends in CRLF, so that a head is their
// concatenation. Pure; values are numbers, dates and fixed words, never text of a consumer.

import type { CellResult } from '../answer.ts'

/**
 * Without `age`: every response is rendered for its instant, and caches would subtract it from `max-age`.
 * @param rightUntil when the slice ends or the timeline turns stale, ms since the epoch
 * @param lastModified of the slice
 * @param status its `cacheStatus`
 */
export const freshnessHeaders = (
  result: CellResult,
  rightUntil: number,
  lastModified: string,
  status: string,
): string =>
  `cache-control: private, max-age=${secondsBetween(result.readAt, rightUntil)}\r\n${lastModified}` +
  `cache-status: abohawa; ${status}; key="${result.subject.id}"\r\n`

/** Never later than `date`, as RFC 9110 has it, also where the clock was set back after the load. */
export const lastModifiedOf = ({ fetchedAt, readAt }: Pick<CellResult, 'fetchedAt' | 'readAt'>): string =>
  `last-modified: ${new Date(Math.min(fetchedAt, readAt)).toUTCString()}\r\n`

/** The parameters of `cache-status` (RFC 9211); the access log has the same text. */
export const cacheStatus = (
  result: Pick<CellResult, 'outcome' | 'source' | 'forwarded' | 'collapsed' | 'freshUntil' | 'readAt'>,
): string => {
  const { outcome, source, forwarded, collapsed, freshUntil, readAt } = result
  // Negative for a stale response.
  const ttl = `ttl=${Math.floor((freshUntil - readAt) / 1000)}`
  const shared = collapsed ? '; collapsed' : ''
  if (outcome === 'miss') return `fwd=miss${shared}; stored; ${ttl}`
  // A stale response with a refresh behind it counts as forwarded; during backoff there is no refresh, and it is a hit with
  // a negative ttl.
  return `${forwarded ? `fwd=stale${shared}` : 'hit'}; ${ttl}; detail=${source}`
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
