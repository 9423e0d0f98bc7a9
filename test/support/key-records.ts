// A subscriber and keys of it, as records of the store.

import type { KeyRecord } from '../../src/stores/store.ts'

export const sampleSubscriber = { id: 'sub_a', name: 'Padma', createdAt: 1_000, revokedAt: null }

/** A key of the sample subscriber with a former hash; the hashes follow from the id. */
export const sampleKey = (id: string): KeyRecord => ({
  id,
  hash: `hash-of-${id}`,
  ...{ subscriberId: sampleSubscriber.id, tier: 'free', limit: null, createdAt: 1_000 },
  ...{ revokedAt: null, expiresAt: null, externalId: null, restrictions: null, rates: null },
  previousHashes: [{ hash: `former-of-${id}`, validUntil: 9_000 }],
})
