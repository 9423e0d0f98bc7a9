// The values of the headers that tell a consumer what it got: quota, freshness, where the weather came from. Pure.

import type { Provenance } from '../answer.ts'
import type { Allowance } from '../metering/quota.ts'

type Headers = Record<string, string>

/** The three headers of every response. Seconds of the reset are those of a Unix timestamp. */
export const rateLimitHeaders = ({ limit, remaining, resetsAt }: Omit<Allowance, 'allowed'>): Headers => ({
  'x-ratelimit-limit': String(limit),
  'x-ratelimit-remaining': String(remaining),
  'x-ratelimit-reset': String(Math.floor(resetsAt / 1000)),
})

export const freshnessHeaders = (from: Provenance): Headers => ({
  'cache-control': `private, max-age=${secondsBetween(from.answeredAt, from.rightUntil)}`,
  age: String(secondsBetween(from.fetchedAt, from.answeredAt)),
  'last-modified': new Date(from.fetchedAt).toUTCString(),
  'cache-status': `abohawa; ${cacheWords(from)}; key="${from.cell.id}"`,
})

/** How the cache dealt with a request, in the words of RFC 9211; the log uses the same. */
export const cacheWords = (
  from: Pick<Provenance, 'outcome' | 'source' | 'forwarded' | 'collapsed' | 'freshUntil' | 'answeredAt'>,
): string => {
  const { outcome, source, forwarded, collapsed, freshUntil, answeredAt } = from
  // Negative for a stale answer.
  const ttl = `ttl=${Math.floor((freshUntil - answeredAt) / 1000)}`
  const shared = collapsed ? ['collapsed'] : []
  if (outcome === 'miss') return ['fwd=miss', ...shared, 'stored', ttl].join('; ')
  // A stale answer goes out at once. Where a load was asked for behind it the request was forwarded all the same; while
  // the last failure rests nothing was, and it is a hit past its time.
  const how = forwarded ? ['fwd=stale', ...shared] : ['hit']
  return [...how, ttl, `detail=${source}`].join('; ')
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
