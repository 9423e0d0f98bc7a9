// Many keys, written into a store directly, before a gateway uses them.

import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createKey, hashOf, randomBase62 } from '../../src/keys/key-form.ts'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Env, forAll } from '../../test/scenarios/set-up.ts'
import { patientRedisEnv } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'

/** The store of a gateway with this environment, for as long as the row runs. */
export const openStoreOf = async (scope: Teardown, env: Env): Promise<Store> => {
  const config = loadConfig({ files: [], env: { ...env, ...patientRedisEnv } })
  const store = await openStore(config, systemClock, { redisAway: () => {}, redisBack: () => {} })
  scope.teardown(() => store.close())
  return store
}

/** Keys in the order of their creation, as callers present them and as the store names them. */
export type Keys = {
  readonly presented: readonly string[]
  readonly ids: readonly string[]
  readonly subscriberId: string
}

export const writeKeys = async (store: Store, size: number): Promise<Keys> => {
  const subscriberId = `sub_${randomBase62(12)}`
  await store.ensureSubscriber({ id: subscriberId, name: 'Bench', createdAt: 0, revokedAt: null })
  const presented = Array.from({ length: size }, () => createKey())
  const ids = presented.map(() => `key_${randomBase62(12)}`)
  const none = {
    limit: null,
    revokedAt: null,
    expiresAt: null,
    externalId: null,
    restrictions: null,
    rates: null,
    previousHashes: [],
  }
  await forAll(presented, 1_000, (key, i) =>
    store.addKey({
      ...none,
      id: ids[i] ?? '',
      hash: hashOf(key),
      subscriberId,
      tier: 'starter',
      createdAt: i,
    }),
  )
  return { presented, ids, subscriberId }
}
