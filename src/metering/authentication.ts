// The value of the key header → the client it stands for, or the reason why not. A key is looked up by its hash; one
// whose form or checksum is wrong is refused without a look-up. Knows no HTTP beyond the value of the header.

import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import { quoted } from '../outside-text.ts'
import type { FoundKey } from '../stores/store.ts'
import type { KeyDirectory } from './key-directory.ts'
import { hashOf, type KeyHash, keyLength, keyPrefix, parseKey } from './key-form.ts'
import { findLimit, type Tiers } from './tiers.ts'

/** Who asks, and the daily limit: the key's own, or that of its tier. */
export type Client = {
  readonly keyId: string
  readonly subscriberId: string
  readonly tier: string
  readonly limit: number
}

export type Refusal =
  | 'missing'
  | 'wrong-prefix'
  | 'malformed'
  | 'unknown'
  | 'replaced'
  | 'key-revoked'
  | 'subscriber-revoked'

export type Authentication = { client: Client } | { refusal: Refusal }

/** The key that was presented last on a connection, with its hash: a key is hashed once a connection. */
export type KeyMemo = { presented: string; hash: KeyHash | undefined }

export const emptyKeyMemo = (): KeyMemo => ({ presented: '', hash: undefined })

/** At once where this process knows the key, or that there is none. */
export type Authenticate = (
  presented: string | undefined,
  memo?: KeyMemo,
) => Authentication | Promise<Authentication>

/** The returned function fails with StoreError when the look-up does and AbohawaError for a tier that is gone: no refusals. */
export const createAuthenticate = (
  keys: Pick<KeyDirectory, 'copyOf' | 'find'>,
  tiers: Tiers,
  clock: Clock,
): Authenticate => {
  const judge = (found: FoundKey | 'unknown'): Authentication => {
    if (found === 'unknown') return { refusal: 'unknown' }
    if (found.key.revokedAt !== null) return { refusal: 'key-revoked' }
    if (found.subscriber.revokedAt !== null) return { refusal: 'subscriber-revoked' }
    if (found.validUntil !== null && found.validUntil <= clock.now()) return { refusal: 'replaced' }
    const { id: keyId, subscriberId, tier } = found.key
    const limit = found.key.limit ?? findLimit(tiers, tier)
    if (limit === undefined)
      throw new AbohawaError(
        'tier_not_configured',
        `key ${keyId} is on tier ${quoted(tier)}, which quota.tiers does not have`,
      )
    return { client: { keyId, subscriberId, tier, limit } }
  }

  return (presented, memo = emptyKeyMemo()) => {
    if (presented === undefined || presented === '') return { refusal: 'missing' }
    if (!presented.startsWith(keyPrefix)) return { refusal: 'wrong-prefix' }
    // A key of which there is a copy was found right before; only for others its form has to be looked at.
    if (presented.length !== keyLength) return { refusal: 'malformed' }
    if (memo.hash === undefined || presented !== memo.presented) {
      memo.presented = presented
      memo.hash = hashOf(presented)
    }
    const copy = keys.copyOf(memo.hash)
    if (copy) return judge(copy)
    if (!parseKey(presented)) return { refusal: 'malformed' }
    const found = keys.find(memo.hash)
    return found instanceof Promise ? found.then(judge) : judge(found)
  }
}
