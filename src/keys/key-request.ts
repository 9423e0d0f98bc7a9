// What a request for a key may say: names, external ids, tiers, limits.

import { InputError } from '../common/errors.ts'
import { holdsKey } from '../common/key-redaction.ts'
import { isPrintable, quoted } from '../common/outside-text.ts'
import { limitOfTier, type Tiers } from './authentication.ts'
import { nameForm } from './name-forms.ts'

/** The maximum characters of a subscriber's name and of an external id. */
export const longestName = 100
export const maxLimit = 999_999_999_999

/** @throws InputError for a tier that is not configured */
export const tierLimitOf = (tiers: Tiers, tier: string): number => {
  const limit = limitOfTier(tiers, tier)
  if (limit === undefined)
    throw new InputError(`tier must be one of ${Object.keys(tiers).join(', ')}, got ${quoted(tier)}`)
  return limit
}

const isShown = (text: string): boolean => text !== '' && [...text].length <= longestName && isPrintable(text)

/** @throws InputError */
export const subscriberNameOf = (given: string): string => {
  const name = nameForm(given)
  if (!isShown(name))
    throw new InputError(
      `the subscriber's name must be 1 to ${longestName} characters on one line, without control or bidi characters, got ${quoted(given)}`,
    )
  if (/^sub_/.test(name))
    throw new InputError(`the subscriber's name can't begin with sub_, as ids do, got ${quoted(given)}`)
  if (holdsKey(name))
    throw new InputError(`the subscriber's name can't contain an API key, got ${quoted(given)}`)
  return name
}

/** @throws InputError */
export const externalIdOf = (given: string): string => {
  const externalId = nameForm(given)
  if (!isShown(externalId) || holdsKey(externalId))
    throw new InputError(
      `the external id must be 1 to ${longestName} characters on one line, without control or bidi characters and API keys, got ${quoted(given)}`,
    )
  return externalId
}

/** A limit of requests a day as text. @throws InputError */
export const limitIn = (given: string): number => {
  if (!/^[1-9]\d{0,11}$/.test(given))
    throw new InputError(`the limit must be an integer from 1 to ${maxLimit}, got ${quoted(given)}`)
  return Number(given)
}
