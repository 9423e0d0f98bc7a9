// Authenticates a request: value of the key header → client, or the reason of the refusal. Looks a key up by its hash, and
// refuses a wrong form or checksum without a look-up.

import { utcDayMs } from '../common/calendar.ts'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { AbohawaError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { FoundKey, KeyRecord, RateLimits } from '../stores/store.ts'
import type { Count } from './count.ts'
import { copyFreshForMs, type KeyCopy, type KeyDirectory } from './key-directory.ts'
import { hashOf, type KeyHash, keyLength, keyPrefix, parseKey, testKeyPrefix } from './key-form.ts'
import { numberOf } from './key-index.ts'
import type { KeyRate, RatesByTier } from './rates.ts'
import { type KeyRestrictions, restrictedBy } from './restrictions.ts'
import { testTier } from './test-keys.ts'

/** The client of a request, and its daily limit: a custom one, or the tier's. */
export type Client = {
  readonly keyId: string
  /** Stands for the id in maps (key-index.ts). */
  readonly keyNumber: number
  readonly subscriberId: string
  readonly tier: string
  readonly limit: number
  readonly record: KeyRecord
  /** When the presented key ends, by its expiry or its rotation, ms since the epoch; null for never. */
  readonly endsAt: number | null
  /** Whether that is soon, so that each response says it. */
  readonly endsSoon: boolean
  /** Undefined for a key that may be used for everything, anywhere. */
  readonly restrictedBy: KeyRestrictions | undefined
  /** Whether it gets fixed weather, which costs the provider nothing. */
  readonly isTest: boolean
  /** Its limits by the second and minute, custom ones or the tier's; undefined for none, as nearly all have. */
  readonly rates?: RateLimits | undefined
  /** Its token buckets. */
  rate?: KeyRate | undefined
  /** The meter's count of the running window, held here so that it is looked up once. */
  count?: Count | undefined
}

/** Tier → requests per local day. */
export type Tiers = Readonly<Record<string, number>>

/** The limit of a tier, if it is configured. */
export const limitOfTier = (tiers: Tiers, tier: string): number | undefined =>
  Object.hasOwn(tiers, tier) ? tiers[tier] : undefined

/** The limits by the second and minute of a key; undefined for none. */
const ratesOf = ({ rates: own, tier }: KeyRecord, rates: RatesByTier): RateLimits | undefined => {
  const limits = own ?? (Object.hasOwn(rates, tier) ? rates[tier] : undefined)
  // A burst alone limits nothing.
  return limits && (limits.perSecond !== null || limits.perMinute !== null) ? limits : undefined
}

export const keyRefusals = [
  ...(['missing', 'wrong-prefix', 'malformed', 'unknown', 'replaced'] as const),
  ...(['key-revoked', 'subscriber-revoked', 'key-expired'] as const),
]
export type KeyRefusal = (typeof keyRefusals)[number]

/** `keyId`: of a refused key that is known. */
export type Authentication = { client: Client } | { refusal: KeyRefusal; keyId?: string }

/** The limits of the tiers. */
type Plans = { readonly tiers: Tiers; readonly rates: RatesByTier }

/** A presented value: its hash, its copy, and the decision on a good key, with the plans that it was made by. */
type Presented = {
  readonly hash: KeyHash
  copy: KeyCopy | undefined
  good: { readonly authentication: Authentication; readonly plans: Plans } | undefined
}

/** Memo per connection: the last presented key. */
export type KeyMemo = { text: string; presented: Presented | undefined }

// Good keys of the last minute or two by their presented value, for connections with many keys: a hash costs more than the rest of
// authentication. A key that is not presented any more does not stay in memory.
const mostRecent = 10_000
const recentForMs = 60_000
// Responses announce the end of a key so long before it.
const endsSoonMs = 7 * utcDayMs

export const emptyKeyMemo = (): KeyMemo => ({ text: '', presented: undefined })

/** Synchronous when this process has the key cached, or knows that there is none. */
export type Authenticate = (
  presented: string | undefined,
  memo?: KeyMemo,
) => Authentication | Promise<Authentication>

/** Applies the limits of the tiers, which may change. */
export type Authenticator = Authenticate & { applyTiers(tiers: Tiers, rates?: RatesByTier): void }

/** The returned function throws StoreError when the look-up fails, and AbohawaError for a tier that is not configured. */
export const createAuthenticate = (
  keys: Pick<KeyDirectory, 'copyOf' | 'find'>,
  tiers: Tiers,
  clock: Clock,
  rates: RatesByTier = {},
): Authenticator => {
  let plans: Plans = { tiers, rates }
  // Of the running minute and the one before: an LRU cache with times would touch four more places in memory for each request.
  let recent = new Map<string, Presented>()
  let previous: typeof recent = new Map()
  const rotate = (): void => {
    previous = recent
    recent = new Map()
  }
  setInterval(rotate, recentForMs).unref()
  const keep = (text: string, presented: Presented): void => {
    if (recent.size >= mostRecent) rotate()
    recent.set(text, presented)
  }
  const recall = (text: string): Presented | undefined => {
    const known = recent.get(text)
    if (known) return known
    const before = previous.get(text)
    if (before) keep(text, before)
    return before
  }
  const hasPassed = (instant: number | null): boolean => instant !== null && instant <= clock.now()
  const decide = (found: FoundKey | 'unknown'): Authentication => {
    if (found === 'unknown') return { refusal: 'unknown' }
    const { id: keyId, subscriberId, tier } = found.key
    if (found.key.revokedAt !== null) return { refusal: 'key-revoked', keyId }
    if (found.subscriber.revokedAt !== null) return { refusal: 'subscriber-revoked', keyId }
    if (hasPassed(found.key.expiresAt)) return { refusal: 'key-expired', keyId }
    if (hasPassed(found.validUntil)) return { refusal: 'replaced', keyId }
    const limit = found.key.limit ?? limitOfTier(plans.tiers, tier)
    if (limit === undefined)
      throw new AbohawaError(
        'tier_not_configured',
        `key ${keyId} is on tier ${quoted(tier)}, which quota.tiers does not have`,
      )
    const { expiresAt, restrictions } = found.key
    const ends = [expiresAt, found.validUntil].filter(instant => instant !== null)
    const endsAt = ends.length === 0 ? null : Math.min(...ends)
    return {
      client: {
        keyId,
        keyNumber: numberOf(keyId),
        subscriberId,
        tier,
        limit,
        isTest: tier === testTier,
        rates: ratesOf(found.key, plans.rates),
        record: found.key,
        endsAt,
        endsSoon: endsAt !== null && endsAt - clock.now() <= endsSoonMs,
        restrictedBy: restrictions === null ? undefined : restrictedBy(restrictions),
        // Here from the start: V8 keeps fields that are added later elsewhere in memory.
        count: undefined,
        rate: undefined,
      },
    }
  }

  const isFresh = ({ freshUntil }: KeyCopy): boolean => isStillToCome(clock, freshUntil, copyFreshForMs)

  /** One client for all requests of a key, to which the meter ties its count. Only time changes the decision on a copy. */
  const decideOnce = (presented: Presented, { found }: KeyCopy): Authentication => {
    const { good } = presented
    if (good?.plans === plans && !hasPassed(found.key.expiresAt) && !hasPassed(found.validUntil))
      return good.authentication
    const authentication = decide(found)
    if ('client' in authentication) presented.good = { authentication, plans }
    return authentication
  }

  const authenticate: Authenticate = (text, memo = emptyKeyMemo()) => {
    if (text === undefined || text === '') return { refusal: 'missing' }
    if (!text.startsWith(keyPrefix) && !text.startsWith(testKeyPrefix)) return { refusal: 'wrong-prefix' }
    // A cached key had the right form, so only other keys need the check of form and checksum.
    if (text.length !== keyLength) return { refusal: 'malformed' }
    let known = memo.presented
    if (known === undefined || text !== memo.text) {
      known = recall(text) ?? { hash: hashOf(text), copy: undefined, good: undefined }
      memo.text = text
      memo.presented = known
    }
    if (known.copy && isFresh(known.copy)) return decideOnce(known, known.copy)
    known.copy = keys.copyOf(known.hash)
    known.good = undefined
    if (known.copy && isFresh(known.copy)) {
      const decision = decideOnce(known, known.copy)
      if ('client' in decision) keep(text, known)
      else known.copy = undefined
      return decision
    }
    if (!parseKey(text)) return { refusal: 'malformed' }
    const found = keys.find(known.hash)
    return found instanceof Promise ? found.then(decide) : decide(found)
  }
  return Object.assign(authenticate, {
    applyTiers: (tiers: Tiers, rates: RatesByTier = {}) => {
      plans = { tiers, rates }
    },
  })
}
