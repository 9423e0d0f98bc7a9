// What makes a key a test key: its tier, which no configuration can name. So a record needs no field for it, and an older version on
// the same store reads it. Test keys get fixed weather, for the test suites of consumers.

import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { KeyRecord } from '../stores/store.ts'
import { keyPrefix, testKeyPrefix } from './key-form.ts'

/** The tier of every test key and of no other; names of configured tiers have no underscore. */
export const testTier = 'test_key'

/** What a key of a tier begins with. */
export const prefixOf = (tier: string): string => (tier === testTier ? testKeyPrefix : keyPrefix)

/** A key begins as its kind does, so it can't change its kind. @throws InputError for a tier of the other kind */
export const checkKind = ({ id, tier: current }: Pick<KeyRecord, 'id' | 'tier'>, tier = current): void => {
  if ((tier === testTier) === (current === testTier)) return
  const kind = current === testTier ? 'a test key' : 'not a test key'
  throw new InputError(
    `tier can't become ${quoted(tier)}, because key ${id} is ${kind}; create another key with \`abohawa keys create\``,
  )
}

// Test requests cost the provider nothing; a key that needs more has a custom limit.
const testPerDay = 1_000

/** The tiers of a configuration, and the tier of test keys. */
export const tiersOf = ({
  tiers,
}: {
  readonly tiers: Readonly<Record<string, number>>
}): Readonly<Record<string, number>> => ({ ...tiers, [testTier]: testPerDay })
