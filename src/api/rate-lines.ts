// The header lines of limits that every response has: those of the contract about the day, and those of
// draft-ietf-httpapi-ratelimit-headers-11, with the limits by the second and minute of a key that has them. admission.ts decides.

import { isoOf } from '../common/calendar.ts'
import { flatText } from '../common/flat-text.ts'
import type { KeyRate, RatePolicy } from '../keys/rates.ts'
import { refilled } from '../stores/token-bucket.ts'
import type { RequestState } from './request-state.ts'

/** The figures of a request; zeros before its key is known. Instants in ms since the epoch. */
export type RateLimit = Pick<RequestState, 'client' | 'remaining' | 'resetsAt' | 'arrivedAt' | 'isDecided'>

/**
 * The header lines of every response: those of the contract, whose reset is a Unix timestamp in seconds, and those of
 * draft-ietf-httpapi-ratelimit-headers-11. Before the quota is known the latter are left out: a client would take r=0 for a reason
 * to wait for midnight.
 */
export const rateLimitLines = (limit: RateLimit): string => {
  const parts: string[] = []
  putRateLimit(parts, 0, limit)
  return parts.join('')
}

/** Of every response to a test key. A browser must not answer a demanded error with the weather that it has kept. */
export const testLines = 'x-test-data: fixed\r\nvary: x-test-error\r\n'

export const rateLimitParts = 5

/** The same as so many parts of a list, from a place of it on. */
export const putRateLimit = (
  parts: string[],
  from: number,
  { client, remaining, resetsAt, arrivedAt, isDecided }: RateLimit,
): void => {
  const seconds = Math.ceil((resetsAt - arrivedAt) / 1000)
  const lines = linesOf(client?.limit ?? 0, resetsAt, seconds)
  const left = String(remaining)
  const isKnown = client !== null && isDecided
  parts[from] = lines.beforeRemaining
  parts[from + 1] = left
  parts[from + 2] = isKnown ? lines.policy : '\r\n'
  parts[from + 3] = isKnown ? left : ''
  let end = isKnown ? lines.end : ''
  const rate = client?.rate
  if (isKnown && rate !== undefined) {
    parts[from + 2] = policyLines(client.limit, ratePolicies(rate))
    end = leftEnd(seconds, ratesLeft(rate, arrivedAt))
  }
  // ISO 8601 in UTC, as the texts of all responses.
  parts[from + 4] =
    client?.endsSoon === true ? `${end}x-key-expires: ${isoOf(client.endsAt as number)}\r\n` : end
}

/** What the lines of all keys with a limit have in common, made once a second. */
const linesOf = (limit: number, resetsAt: number, seconds: number): Lines => {
  if (resetsAt !== known.resetsAt || seconds !== known.seconds)
    known = { resetsAt, seconds, byLimit: new Map<number, Lines>() }
  let lines = known.byLimit.get(limit)
  if (!lines) {
    lines = makeLines(limit, resetsAt, seconds)
    known.byLimit.set(limit, lines)
  }
  return lines
}
type Lines = ReturnType<typeof makeLines>
let known = { resetsAt: 0, seconds: 0, byLimit: new Map<number, Lines>() }

/** @param more policies behind that of the day, each after a comma; the same for what is left of them */
const policyLines = (limit: number, more = ''): string =>
  `\r\nratelimit-policy: "daily";q=${limit};w=86400${more}\r\nratelimit: "daily";r=`
const leftEnd = (seconds: number, more = ''): string => `;t=${seconds}${more}\r\n`

const makeLines = (limit: number, resetsAt: number, seconds: number) => ({
  beforeRemaining: flatText(
    `x-ratelimit-limit: ${limit}\r\nx-ratelimit-reset: ${Math.floor(resetsAt / 1000)}\r\nx-ratelimit-remaining: `,
  ),
  policy: flatText(policyLines(limit)),
  end: flatText(leftEnd(seconds)),
})

// Keys without limits by the second and minute never come here.
const windows: Record<RatePolicy, number> = { second: 1, minute: 60 }

/** `, "second";q=10;w=1, "minute";q=300;w=60` */
const ratePolicies = ({ buckets }: KeyRate): string =>
  buckets.map(({ policy, limit }) => `, "${policy}";q=${limit};w=${windows[policy]}`).join('')

/**
 * `, "second";r=9;t=1, "minute";r=299;t=1`: what may come at once, and in how many seconds all of it may; of what is used up in how
 * many the next request may, as `retry-after` has it.
 */
const ratesLeft = (rate: KeyRate, now: number): string =>
  rateFigures(rate, now)
    .map(
      ({ policy, left, moreInMs }) => `, "${policy}";r=${left};t=${Math.max(1, Math.ceil(moreInMs / 1000))}`,
    )
    .join('')

/**
 * A limit as the headers show it: how many requests may come at once, and in how many ms the bucket is full, or has room for a request
 * where it has none now.
 */
type RateFigures = {
  readonly policy: RatePolicy
  readonly limit: number
  readonly left: number
  readonly moreInMs: number
}

export const rateFigures = ({ buckets, held }: KeyRate, at: number): RateFigures[] =>
  buckets.map(bucket => {
    const { policy, limit, capacity, perMs } = bucket
    const tokens = Math.min(capacity, refilled(bucket, bucket.tokens, at - bucket.at) + held)
    const left = Math.max(0, Math.floor(tokens))
    // Rounded as the wait of a refusal is: a part of a ms is no second.
    return { policy, limit, left, moreInMs: Math.round(((left === 0 ? 1 : capacity) - tokens) / perMs) }
  })
