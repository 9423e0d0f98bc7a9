// The check of the keys: whether the tier of each is in the configuration. Reads every key, in parts, and no count of any.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { safeText } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import { limitOfTier } from '../../keys/authentication.ts'
import type { KeyStore } from '../../stores/store.ts'
import { type Finding, fail, ok } from './check.ts'

const keysRead = 500
const maxNamed = 5

/** Keys whose requests get 500: not revoked, without a limit of their own, on a tier that is not configured. */
export const tiersFinding = async (
  store: Pick<KeyStore, 'countKeys' | 'listKeys'>,
  { tiers }: Pick<Config['quota'], 'tiers'>,
): Promise<Finding> => {
  const total = await store.countKeys()
  const missing = new Map<string, number>()
  for (let from = 0; from < total; from += keysRead) {
    for (const { tier, limit, revokedAt } of await store.listKeys(from, keysRead))
      if (revokedAt === null && limit === null && limitOfTier(tiers, tier) === undefined)
        missing.set(tier, (missing.get(tier) ?? 0) + 1)
    await nextTurn()
  }
  if (missing.size === 0)
    return ok(total === 0 ? 'there are no keys yet' : 'quota.tiers has the tier of every key')
  const count = [...missing.values()].reduce((sum, keys) => sum + keys, 0)
  const named = [...missing.keys()].slice(0, maxNamed).map(tier => safeText(tier, 40))
  const shown = [...named, ...(missing.size > maxNamed ? ['…'] : [])].join(', ')
  return fail(
    `${count === 1 ? '1 key is' : `${count.toLocaleString('en-US')} keys are`} on ${shown}, which quota.tiers does not have: a gateway that starts now answers ${count === 1 ? 'it' : 'them'} 500`,
    'Put the tier back into quota.tiers, or move the keys: npm run -s abohawa -- keys set ID --tier NAME',
  )
}
