// Keys and subscribers as lists show them: a record of a key joined with its subscriber, without a hash.

import type { LocalDay } from '../common/calendar.ts'
import { isoOf, isoOrNull } from '../common/calendar.ts'
import type { KeyRecord, RateLimits, Restrictions, Subscriber } from '../stores/store.ts'
import { limitOfTier, type Tiers } from './authentication.ts'
import { testTier } from './test-keys.ts'

/** Instants in ISO 8601. `status` counts the subscriber's revocation too. */
export type ListedKey = {
  id: string
  externalId: string | null
  subscriber: string
  subscriberId: string
  tier: string
  /** Whether it gets fixed weather. */
  test: boolean
  /** Null when the tier is not configured any more and the key has no custom limit; requests with it get 500. */
  limit: number | null
  /** Whether the limit is a custom one and not the tier's. */
  ownLimit: boolean
  status: 'active' | 'expired' | 'revoked' | 'subscriber revoked' | 'subscriber missing'
  createdAt: string
  expiresAt: string | null
  revokedAt: string | null
  /** Until when a previous key of this id works; null when none does. */
  formerKeyUntil: string | null
  restrictions: Restrictions | null
  /** Custom rates; null for the tier's. */
  rates: RateLimits | null
}

/** `lastUsedOn` is the last local day with a count, null where none is kept; `usedToday` is the count of today. */
export type KeyUsage = { lastUsedOn: LocalDay | null; usedToday: number }

export type ListedSubscriber = {
  id: string
  name: string
  status: 'active' | 'revoked'
  createdAt: string
  revokedAt: string | null
}

/** With the number of its keys, which takes a pass over all keys. */
export type CountedSubscriber = ListedSubscriber & { keys: number }

/** @param subscriber undefined where its record is missing or damaged */
export const listedKey = (
  key: KeyRecord,
  subscriber: Subscriber | undefined,
  tiers: Tiers,
  now: number,
): ListedKey => ({
  id: key.id,
  externalId: key.externalId,
  subscriber: subscriber?.name ?? '',
  subscriberId: key.subscriberId,
  tier: key.tier,
  test: key.tier === testTier,
  limit: key.limit ?? limitOfTier(tiers, key.tier) ?? null,
  ownLimit: key.limit !== null,
  status: statusOf(key, subscriber, now),
  createdAt: isoOf(key.createdAt),
  expiresAt: isoOrNull(key.expiresAt),
  revokedAt: isoOrNull(key.revokedAt),
  formerKeyUntil: isoOrNull(
    key.previousHashes.findLast(({ validUntil }) => validUntil > now)?.validUntil ?? null,
  ),
  restrictions: key.restrictions,
  rates: key.rates,
})

// In the order in which a request is refused.
const statusOf = (key: KeyRecord, subscriber: Subscriber | undefined, now: number): ListedKey['status'] => {
  if (key.revokedAt !== null) return 'revoked'
  if (!subscriber) return 'subscriber missing'
  if (subscriber.revokedAt !== null) return 'subscriber revoked'
  return key.expiresAt !== null && key.expiresAt <= now ? 'expired' : 'active'
}

export const listedSubscriber = (subscriber: Subscriber): ListedSubscriber => ({
  id: subscriber.id,
  name: subscriber.name,
  status: subscriber.revokedAt === null ? 'active' : 'revoked',
  createdAt: isoOf(subscriber.createdAt),
  revokedAt: isoOrNull(subscriber.revokedAt),
})
