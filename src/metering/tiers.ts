// Tiers: the daily limit of a key by the name of its plan.

import { InputError } from '../errors.ts'
import { quoted } from '../outside-text.ts'

/** Tier name → requests per local day. */
export type Tiers = Readonly<Record<string, number>>

/** The limit of a tier, if it is configured. */
export const findLimit = (tiers: Tiers, name: string): number | undefined =>
  Object.hasOwn(tiers, name) ? tiers[name] : undefined

/** @throws InputError for a name that is not among the tiers */
export const limitOf = (tiers: Tiers, name: string): number => {
  const limit = findLimit(tiers, name)
  if (limit === undefined)
    throw new InputError(`tier is ${quoted(name)}; allowed: ${Object.keys(tiers).join(', ')}`)
  return limit
}
