// What makes a key a test key: its tier, which no configuration can name. So a record needs no field for it, and an older version on
// the same store reads it. Test keys are for consumers' own test suites; api/fixed-weather.ts has what they are answered with.

import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { KeyRecord } from '../stores/store.ts'
import { keyPrefix, testKeyPrefix } from './key-form.ts'

/** The tier of every test key and of no other; names of configured tiers have no underscore. */
export const testTier = 'test_key'

/** What a key of a tier begins with. */
export const prefixOf = (tier: string): string => (tier === testTier ? testKeyPrefix : keyPrefix)

/** A key begins as those of its kind do, so that it stays one. @throws InputError for a tier of the other kind */
export const checkKind = ({ id, tier: former }: Pick<KeyRecord, 'id' | 'tier'>, tier = former): void => {
  if ((tier === testTier) === (former === testTier)) return
  const kind = former === testTier ? 'is a test key' : 'is no test key'
  throw new InputError(
    `tier is ${quoted(tier)}, and key ${id} ${kind}, which stays so; \`abohawa keys create\` makes another one`,
  )
}

/** The tiers of a configuration, and that of test keys. */
export const tiersOf = ({
  tiers,
  testPerDay,
}: {
  readonly tiers: Readonly<Record<string, number>>
  readonly testPerDay: number
}): Readonly<Record<string, number>> => ({ ...tiers, [testTier]: testPerDay })
