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
  'cache-status': cacheStatus(from),
})

// RFC 9211. A stale answer is a hit with a negative ttl: the request itself was not forwarded.
const cacheStatus = ({ outcome, source, collapsed, freshUntil, answeredAt, cell }: Provenance): string => {
  const ttl = Math.floor((freshUntil - answeredAt) / 1000)
  const how =
    outcome === 'miss'
      ? `fwd=miss; stored${collapsed ? '; collapsed' : ''}; ttl=${ttl}`
      : `hit; ttl=${ttl}; detail=${outcome === 'stale' ? `stale-${source}` : source}`
  return `abohawa; ${how}; key="${cell.id}"`
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
