// The limits by the second and minute of a key, as figures and in the headers of draft-ietf-httpapi-ratelimit-headers-11.

import type { KeyRate, RatePolicy } from '../keys/rates.ts'
import { refilled } from '../stores/token-bucket.ts'

const windows: Record<RatePolicy, number> = { second: 1, minute: 60 }

/** The policies after that of the day: `, "second";q=10;w=1, "minute";q=300;w=60` */
export const policiesText = ({ buckets }: KeyRate): string =>
  buckets.map(({ policy, limit }) => `, "${policy}";q=${limit};w=${windows[policy]}`).join('')

/** What is left: `, "second";r=9;t=1, "minute";r=299;t=1`. At r=0, `t` is when the next request may come, as in `retry-after`. */
export const ratesLeft = (rate: KeyRate, now: number): string =>
  rateFigures(rate, now)
    .map(
      ({ policy, left, moreInMs }) => `, "${policy}";r=${left};t=${Math.max(1, Math.ceil(moreInMs / 1000))}`,
    )
    .join('')

/** A limit in figures: how many requests may come now, and in how many ms the bucket is full, or has room again where it has none. */
type RateFigures = {
  readonly policy: RatePolicy
  readonly limit: number
  readonly left: number
  readonly moreInMs: number
}

export const rateFigures = ({ buckets }: KeyRate, at: number): RateFigures[] =>
  buckets.map(bucket => {
    const { policy, limit, capacity, perMs } = bucket
    const tokens = refilled(bucket, bucket.tokens, at - bucket.at)
    const left = Math.max(0, Math.floor(tokens))
    // Rounded as the wait of a refusal is: a part of a ms is no second.
    return { policy, limit, left, moreInMs: Math.round(((left === 0 ? 1 : capacity) - tokens) / perMs) }
  })
