// The limits of a key by the second and minute: a token bucket for each, kept in the store. Each request takes a token of every bucket in
// the batch that counts it. The last reply of the store is kept here: for the headers, for how long a refused request waits, and for the
// equal part of the limits that an instance admits while the store is away.

import { minuteMs } from '../common/calendar.ts'
import { type RateLimits, rateKinds } from '../stores/store.ts'
import {
  longestBurstSeconds,
  refilled,
  type TokenBucket,
  type TokenEntry,
  type TokenGrant,
} from '../stores/token-bucket.ts'
import { createKeyIndex } from './key-index.ts'

/** The names of the limits, as headers, sentences and metrics have them. */
export const ratePolicies = ['second', 'minute'] as const
export type RatePolicy = (typeof ratePolicies)[number]

/** Limits by tier. */
export type RatesByTier = Readonly<Record<string, RateLimits>>

/** A request comes too soon: by which limit, and how long until it has room. */
export type RateRefusal = { readonly policy: RatePolicy; readonly limit: number; readonly waitMs: number }

/** A bucket as this instance last saw it: what it held at an instant. */
type Bucket = TokenBucket & {
  readonly policy: RatePolicy
  readonly limit: number
  tokens: number
  at: number
}

/** The buckets of a key. */
export type KeyRate = {
  readonly keyId: string
  limits: RateLimits
  buckets: readonly Bucket[]
  /** Requests that were admitted here since the store last said what is left, and how many tokens each took. */
  admittedLocally: number
  localParts: number
  next: KeyRate | undefined
}

/** A client whose requests are limited, with its buckets from its first request on. */
export type RatedClient = {
  readonly keyId: string
  readonly rates?: RateLimits | undefined
  rate?: KeyRate | undefined
}

// There may be as many as there are keys; a step of so many takes less than a ms.
const maxPerStep = 2_000

/** The buckets of all keys that have any. A bucket is forgotten once it is full again, however long that takes. */
export const createRates = (now: () => number) => {
  const known = createKeyIndex<KeyRate>()
  let forgetting: Iterator<KeyRate> | undefined
  return {
    /** The buckets of a client with limits, which may have changed. */
    of: (client: RatedClient, limits: RateLimits): KeyRate => {
      let rate = known.find(client.keyId)
      if (!rate) {
        rate = newRate(client.keyId, limits, now())
        known.add(rate)
      } else if (!isSame(rate.limits, limits)) {
        // A key that is being replaced has a client for each of its values, and those have equal limits.
        rate.buckets = bucketsOf(limits, now(), rate.buckets)
        rate.limits = limits
      }
      client.rate = rate
      return rate
    },
    /** Forgets some of the full ones: each call continues where the one before stopped. */
    forgetFull: (): void => {
      forgetting ??= known.values()
      const at = now()
      for (let visited = 0; visited < maxPerStep; visited++) {
        const { value, done } = forgetting.next()
        if (done) {
          forgetting = undefined
          return
        }
        if (value.buckets.every(bucket => tokensIn(bucket, at) >= bucket.capacity)) known.delete(value)
      }
    },
  }
}

const isSame = (one: RateLimits, other: RateLimits): boolean =>
  one === other || rateKinds.every(kind => one[kind] === other[kind])

export const newRate = (keyId: string, limits: RateLimits, at: number): KeyRate => ({
  ...{ keyId, limits, buckets: bucketsOf(limits, at) },
  ...{ admittedLocally: 0, localParts: 1, next: undefined },
})

/** Full buckets, or with what the buckets before them hold. */
const bucketsOf = (
  { perSecond, burst, perMinute }: RateLimits,
  at: number,
  before: readonly Bucket[] = [],
): Bucket[] => {
  const bucket = (policy: RatePolicy, limit: number | null, most: number, spanMs: number): Bucket[] => {
    if (limit === null) return []
    const capacity = Math.min(most, limit * longestBurstSeconds)
    const known = before.find(each => each.policy === policy)
    const tokens = Math.min(capacity, known?.tokens ?? capacity)
    return [{ policy, limit, capacity, perMs: limit / spanMs, tokens, at: known?.at ?? at }]
  }
  return [
    ...bucket('second', perSecond, burst ?? perSecond ?? 0, 1_000),
    ...bucket('minute', perMinute, perMinute ?? 0, minuteMs),
  ]
}

const tokensIn = (bucket: Bucket, at: number): number => refilled(bucket, bucket.tokens, at - bucket.at)

/** The buckets as a batch asks the store for their tokens, with what was spent of each without it. */
export const tokenEntriesOf = ({ buckets, admittedLocally, localParts }: KeyRate, at: number): TokenEntry[] =>
  buckets.map(bucket => {
    const { policy: name, capacity, perMs } = bucket
    const missing = capacity - tokensIn(bucket, at)
    return { name, capacity, perMs, spent: Math.min(admittedLocally, missing / localParts) }
  })

/** Takes over what the store said is left of the requested buckets: the limits may have changed meanwhile. */
export const applyTokens = (
  rate: KeyRate,
  asked: readonly TokenEntry[],
  { left }: TokenGrant,
  at: number,
): void => {
  asked.forEach(({ name }, i) => {
    const bucket = rate.buckets.find(({ policy }) => policy === name)
    if (!bucket) return
    bucket.tokens = Math.min(bucket.capacity, left[i] ?? 0)
    bucket.at = at
  })
  rate.admittedLocally = 0
}

/**
 * Admits a request from the buckets of this instance, or says why not.
 * @param parts how many instances admit: each takes as many tokens
 */
export const admitLocally = (rate: KeyRate, at: number, parts: number): RateRefusal | undefined => {
  for (const bucket of rate.buckets) {
    bucket.tokens = tokensIn(bucket, at)
    bucket.at = at
  }
  const isFree = ({ tokens, capacity }: Bucket) => tokens >= Math.min(parts, capacity)
  if (!rate.buckets.every(isFree)) return rateRefusal(rate, at, parts)
  for (const bucket of rate.buckets) bucket.tokens -= parts
  rate.admittedLocally += 1
  rate.localParts = parts
  return undefined
}

/** By the bucket with the longest wait. */
export const rateRefusal = ({ buckets }: KeyRate, at: number, tokens = 1): RateRefusal => {
  let longest: RateRefusal = { policy: 'second', limit: 0, waitMs: -1 }
  for (const bucket of buckets) {
    const { policy, limit, capacity, perMs } = bucket
    const missing = Math.min(tokens, capacity) - tokensIn(bucket, at)
    const waitMs = Math.max(0, Math.round(missing / perMs))
    if (waitMs > longest.waitMs) longest = { policy, limit, waitMs }
  }
  return longest
}
