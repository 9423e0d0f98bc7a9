// The limits of a key by the second and minute: a token bucket for each. A gateway that is alone on its store has them in memory. In
// a fleet they stand in the store, and a gateway takes tokens in chunks: those for the requests that wait, and some ahead while more
// come. An empty bucket is known here until it refills. While the store is away each gateway admits its equal part. The limit of
// the day is the meter's.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { minuteMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import type { RateLimits, UsageStore } from '../stores/store.ts'
import {
  longestBurstSeconds,
  refilled,
  type TokenBucket,
  type TokenGrant,
  type TokenStore,
} from '../stores/token-bucket.ts'

/** The names of the limits, as headers, sentences and metrics have them. */
export const ratePolicies = ['second', 'minute'] as const
export type RatePolicy = (typeof ratePolicies)[number]

/** Limits by tier. */
export type RatesByTier = Readonly<Record<string, RateLimits>>

/** A request comes too soon: by which limit, and how long until it has room. */
export type RateRefusal = { readonly policy: RatePolicy; readonly limit: number; readonly waitMs: number }

/** Called once, at once or in a later turn; without a refusal the request goes on. Never throws. */
type RateWaiter = (refusal?: RateRefusal) => void

/** A bucket as this instance last saw it: what it held at an instant. */
type Bucket = TokenBucket & {
  readonly policy: RatePolicy
  readonly limit: number
  tokens: number
  at: number
}

/** The buckets of a key, and its chunk. Instants of the chunk are those of `performance.now()`. */
export type KeyRate = {
  readonly keyId: string
  limits: RateLimits
  buckets: readonly Bucket[]
  /** The tokens of the last chunk that are left, when it was requested, and how many requests were admitted since. */
  held: number
  takenAt: number
  used: number
  /** Until when the store has nothing. */
  emptyUntil: number
  waiting: RateWaiter[]
  isTaking: boolean
  /** Requests that were admitted without the store since it last granted, and how many tokens each took. */
  admittedLocally: number
  localParts: number
}

export type RatesParts = {
  readonly store: TokenStore & Pick<UsageStore, 'partitionOf'>
  /** Whether no other instance uses the store. */
  readonly isAlone: () => boolean
  /** Whether the store is away that has the buckets of a key. */
  readonly isStoreAway: (keyId: string) => boolean
  /** How many instances may admit requests; undefined while that is unknown. */
  readonly instances: () => number | undefined
  readonly clock: Clock
}

export type Rates = {
  /** Takes a token for a request of a client with `rates`. */
  take(client: Limited, waiter: RateWaiter): void
  close(): void
}

/** A client whose requests are limited, with its buckets from its first request on. */
type Limited = {
  readonly keyId: string
  readonly rates?: RateLimits | undefined
  rate?: KeyRate | undefined
}

// For so long the tokens of a chunk may be used, and for so long they may go back. A token that is used later than it was taken lets
// others have what refilled meanwhile: a tenth of a second's.
const usableForMs = 50
const returnableForMs = 100
// Requests behind an empty bucket share a step: the store is asked again when some tokens may be there.
const emptyForMs = 20
const retryStoreAfterMs = 1_000

/** @param now in ms, from any beginning */
export const createRates = (
  { store, isAlone, isStoreAway, instances, clock }: RatesParts,
  now = () => performance.now(),
): Rates => {
  // Keys of the running minute and the one before. A key that sent nothing for a minute has full buckets.
  let recent = new Map<string, KeyRate>()
  let former: typeof recent = new Map()
  const end = every(clock, minuteMs, () => {
    former = recent
    recent = new Map()
  })
  // By partition: on a cluster, one may be away and another not.
  const failedUntil = new Map<number, number>()

  const rateOf = (client: Limited, limits: RateLimits): KeyRate => {
    const { keyId } = client
    let rate = recent.get(keyId)
    if (!rate) {
      rate = former.get(keyId) ?? newRate(keyId, limits, clock.now())
      recent.set(keyId, rate)
    }
    // A key that is being replaced has a client for each of its values, and those have equal limits.
    if (!isSame(rate.limits, limits)) {
      rate.buckets = bucketsOf(limits, clock.now(), rate.buckets)
      rate.limits = limits
      rate.emptyUntil = Number.NEGATIVE_INFINITY
    }
    client.rate = rate
    return rate
  }

  /** Admits from the buckets of this instance. @param parts each request takes as many tokens, because so many instances do alike */
  const admitLocally = (rate: KeyRate, parts: number): RateRefusal | undefined => {
    const at = clock.now()
    for (const bucket of rate.buckets) {
      bucket.tokens = refilled(bucket, bucket.tokens, at - bucket.at)
      bucket.at = at
    }
    const isFree = ({ tokens, capacity }: Bucket) => tokens >= Math.min(parts, capacity)
    if (!rate.buckets.every(isFree)) return refusalOf(rate, at, parts)
    for (const bucket of rate.buckets) bucket.tokens -= parts
    rate.admittedLocally += 1
    rate.localParts = parts
    return undefined
  }

  /** As many again as since the last chunk, and no more than are used within the life of one. */
  const aheadOf = ({ used, takenAt }: KeyRate, at: number): number =>
    at - takenAt < returnableForMs
      ? Math.floor(Math.min(2 * used, (used * usableForMs) / Math.max(1, at - takenAt)))
      : 0
  const request = (rate: KeyRate, wanted: number, at: number): Promise<TokenGrant> => {
    const size = instances() ?? 1
    const instant = clock.now()
    const givenBack = at - rate.takenAt < returnableForMs ? rate.held : 0
    // Others may have them from now on.
    rate.held = 0
    const buckets = rate.buckets.map(({ policy: name, capacity, perMs, tokens, at }) => {
      const missing = capacity - refilled({ capacity, perMs }, tokens, instant - at)
      const spent = Math.min(rate.admittedLocally, missing / rate.localParts) - givenBack
      return { name, capacity, perMs, spent }
    })
    // Half of an equal part, so that a burst finds something at the others too.
    const share = 1 / (2 * size)
    return store.takeTokens({ keyId: rate.keyId, buckets, wanted, ahead: aheadOf(rate, at), share })
  }
  /** @param buckets those that were requested: the limits may have changed meanwhile */
  const apply = (
    rate: KeyRate,
    buckets: readonly Bucket[],
    { granted, left }: TokenGrant,
    wanted: number,
    takenAt: number,
  ): void => {
    const at = clock.now()
    buckets.forEach((bucket, i) => {
      bucket.tokens = left[i] ?? 0
      bucket.at = at
    })
    rate.held = Math.max(0, granted - wanted)
    rate.takenAt = takenAt
    rate.used = Math.min(granted, wanted)
    rate.admittedLocally = 0
    if (granted < wanted) rate.emptyUntil = now() + emptyMs(rate)
  }
  const takeChunks = async (rate: KeyRate): Promise<void> => {
    rate.isTaking = true
    // Requests of one turn of the event loop share a step.
    await nextTurn()
    while (rate.waiting.length > 0) {
      const { waiting: came, buckets } = rate
      rate.waiting = []
      const takenAt = now()
      // What the step before took ahead is for those that came while it ran.
      const waiting = came.filter(waiter => !usesHeld(rate, takenAt, waiter))
      if (waiting.length === 0) continue
      // They came while the store said so.
      if (takenAt < rate.emptyUntil) {
        const refusal = refusalOf(rate, clock.now())
        for (const waiter of waiting) waiter(refusal)
        continue
      }
      let grant: TokenGrant | undefined
      try {
        if (!isAway(rate.keyId, takenAt)) grant = await request(rate, waiting.length, takenAt)
      } catch {
        failedUntil.set(store.partitionOf(rate.keyId), now() + retryStoreAfterMs)
      }
      if (!grant) {
        rate.held = 0
        for (const waiter of waiting) waiter(admitLocally(rate, instances() ?? 1))
        continue
      }
      apply(rate, buckets, grant, waiting.length, takenAt)
      const { granted } = grant
      const refusal = granted < waiting.length ? refusalOf(rate, clock.now()) : undefined
      waiting.forEach((waiter, i) => {
        waiter(i < granted ? undefined : refusal)
      })
    }
    rate.isTaking = false
  }
  const isAway = (keyId: string, at: number): boolean =>
    at < (failedUntil.get(store.partitionOf(keyId)) ?? at) || isStoreAway(keyId)

  return {
    take: (client, waiter) => {
      if (!client.rates) return waiter()
      const rate = rateOf(client, client.rates)
      if (isAlone()) return waiter(admitLocally(rate, 1))
      const at = now()
      if (usesHeld(rate, at, waiter)) return
      if (at < rate.emptyUntil) return waiter(refusalOf(rate, clock.now()))
      rate.waiting.push(waiter)
      if (!rate.isTaking) void takeChunks(rate)
    },
    close: end,
  }
}

/** Whether a request goes on with a token that was taken ahead. */
const usesHeld = (rate: KeyRate, at: number, waiter: RateWaiter): boolean => {
  if (rate.held <= 0 || at - rate.takenAt >= usableForMs) return false
  rate.held -= 1
  rate.used += 1
  waiter()
  return true
}

const isSame = (one: RateLimits, other: RateLimits): boolean =>
  one === other ||
  (one.perSecond === other.perSecond && one.burst === other.burst && one.perMinute === other.perMinute)

export const newRate = (keyId: string, limits: RateLimits, at: number): KeyRate => ({
  keyId,
  limits,
  buckets: bucketsOf(limits, at),
  held: 0,
  takenAt: Number.NEGATIVE_INFINITY,
  used: 0,
  emptyUntil: Number.NEGATIVE_INFINITY,
  waiting: [],
  isTaking: false,
  admittedLocally: 0,
  localParts: 1,
})

/** Full ones, or with what those before them hold. */
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

const waitOf = (bucket: Bucket, at: number, tokens: number): number =>
  (Math.min(tokens, bucket.capacity) - refilled(bucket, bucket.tokens, at - bucket.at)) / bucket.perMs

/** By the bucket that has a request wait for longest. */
const refusalOf = ({ buckets }: KeyRate, at: number, tokens = 1): RateRefusal => {
  let longest: RateRefusal | undefined
  for (const bucket of buckets) {
    const waitMs = Math.max(0, Math.round(waitOf(bucket, at, tokens)))
    if (!longest || waitMs > longest.waitMs) longest = { policy: bucket.policy, limit: bucket.limit, waitMs }
  }
  return longest ?? { policy: 'second', limit: 0, waitMs: 0 }
}

/** How long the store need not be asked: until a token is there, or some of a bucket that gains many. */
const emptyMs = ({ buckets }: KeyRate): number => {
  let ms = 0
  for (const bucket of buckets) {
    const wait = waitOf(bucket, bucket.at, 1)
    if (wait > 0) ms = Math.max(ms, wait, Math.min(emptyForMs, bucket.capacity / bucket.perMs / 2))
  }
  return ms
}
