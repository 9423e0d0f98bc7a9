// Authenticates a request: value of the key header → client, or the reason of the refusal. Looks a key up by its hash, and
// refuses a wrong form or checksum without a look-up. Knows no other part of HTTP.

import { LRUCache } from 'lru-cache'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { AbohawaError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { FoundKey } from '../stores/store.ts'
import { copyFreshForMs, type KeyCopy, type KeyDirectory } from './key-directory.ts'
import { hashOf, type KeyHash, keyLength, keyPrefix, parseKey } from './key-form.ts'

/** The client of a request, and its daily limit: the key's own, or that of its tier. */
export type Client = {
  readonly keyId: string
  readonly subscriberId: string
  readonly tier: string
  readonly limit: number
}

/** Tier → requests per local day. */
export type Tiers = Readonly<Record<string, number>>

/** The limit of a tier, if it is configured. */
export const limitOfTier = (tiers: Tiers, tier: string): number | undefined =>
  Object.hasOwn(tiers, tier) ? tiers[tier] : undefined

export const keyRefusals = [
  ...(['missing', 'wrong-prefix', 'malformed', 'unknown', 'replaced'] as const),
  ...(['key-revoked', 'subscriber-revoked', 'key-expired'] as const),
]
export type KeyRefusal = (typeof keyRefusals)[number]

/** `keyId` is that of a refused key that is known. */
export type Authentication = { client: Client } | { refusal: KeyRefusal; keyId?: string }

/** Memo per connection: the last presented key, its hash and its copy. */
export type KeyMemo = { presented: string; hash: KeyHash | undefined; copy: KeyCopy | undefined }

type Hashed = { readonly hash: KeyHash; readonly copy: KeyCopy }

// Good keys of the last minute or two by their presented value, for connections with many keys: a hash costs more than the rest of
// authentication. A key that is not presented any more does not stay in memory.
const mostRecent = 10_000
const recentForMs = 60_000

export const emptyKeyMemo = (): KeyMemo => ({ presented: '', hash: undefined, copy: undefined })

/** Synchronous when this process has the key cached, or knows that there is none. */
export type Authenticate = (
  presented: string | undefined,
  memo?: KeyMemo,
) => Authentication | Promise<Authentication>

/** Applies the limits of the tiers, which may change. */
export type Authenticator = Authenticate & { applyTiers(tiers: Tiers): void }

/** The returned function throws StoreError when the look-up fails, and AbohawaError for a tier that is not configured. */
export const createAuthenticate = (
  keys: Pick<KeyDirectory, 'copyOf' | 'find'>,
  given: Tiers,
  clock: Clock,
): Authenticator => {
  let tiers = given
  // By size, because lru-cache allocates `max` entries at once.
  const recent = new LRUCache<string, Hashed>({
    maxSize: mostRecent,
    sizeCalculation: () => 1,
    ttl: recentForMs,
  })
  setInterval(() => recent.purgeStale(), recentForMs).unref()
  const decide = (found: FoundKey | 'unknown'): Authentication => {
    if (found === 'unknown') return { refusal: 'unknown' }
    const { id: keyId, subscriberId, tier } = found.key
    if (found.key.revokedAt !== null) return { refusal: 'key-revoked', keyId }
    if (found.subscriber.revokedAt !== null) return { refusal: 'subscriber-revoked', keyId }
    if (found.key.expiresAt !== null && found.key.expiresAt <= clock.now())
      return { refusal: 'key-expired', keyId }
    if (found.validUntil !== null && found.validUntil <= clock.now()) return { refusal: 'replaced', keyId }
    const limit = found.key.limit ?? limitOfTier(tiers, tier)
    if (limit === undefined)
      throw new AbohawaError(
        'tier_not_configured',
        `key ${keyId} is on tier ${quoted(tier)}, which quota.tiers does not have`,
      )
    return { client: { keyId, subscriberId, tier, limit } }
  }

  const isFresh = ({ freshUntil }: KeyCopy): boolean => isStillToCome(clock, freshUntil, copyFreshForMs)

  const authenticate: Authenticate = (presented, memo = emptyKeyMemo()) => {
    if (presented === undefined || presented === '') return { refusal: 'missing' }
    if (!presented.startsWith(keyPrefix)) return { refusal: 'wrong-prefix' }
    // A cached key had the right form, so only other keys need the check of form and checksum.
    if (presented.length !== keyLength) return { refusal: 'malformed' }
    if (memo.hash === undefined || presented !== memo.presented) {
      const known = recent.get(presented)
      memo.presented = presented
      memo.hash = known?.hash ?? hashOf(presented)
      memo.copy = known?.copy
    }
    if (memo.copy && isFresh(memo.copy)) return decide(memo.copy.found)
    memo.copy = keys.copyOf(memo.hash)
    if (memo.copy && isFresh(memo.copy)) {
      const decision = decide(memo.copy.found)
      if ('client' in decision) recent.set(presented, { hash: memo.hash, copy: memo.copy })
      return decision
    }
    if (!parseKey(presented)) return { refusal: 'malformed' }
    const found = keys.find(memo.hash)
    return found instanceof Promise ? found.then(decide) : decide(found)
  }
  return Object.assign(authenticate, {
    applyTiers: (next: Tiers) => {
      tiers = next
    },
  })
}
