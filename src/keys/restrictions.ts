// Checks a request against the restrictions of its key: where it came from, and its endpoint.

import { createAddressMatch, isAddressRange } from '../common/address-range.ts'
import type { ResponseName } from '../common/endpoints.ts'
import { createStarMatch, isStarred } from '../common/web-origin.ts'
import type { Restrictions } from '../stores/store.ts'

export const restrictionRefusals = [
  'origin-not-allowed',
  'address-not-allowed',
  'endpoint-not-allowed',
] as const
export type RestrictionRefusal = (typeof restrictionRefusals)[number]

/** What is known of a request before its address is resolved. */
type Given = { readonly origin: string | undefined; readonly endpoint: ResponseName }

export type KeyRestrictions = {
  readonly restrictions: Restrictions
  /** Why a request is refused; undefined where it is not. @param addressOf the client's address, resolved only where it matters */
  refusal(request: Given, addressOf: () => string | undefined): RestrictionRefusal | undefined
}

/** Restrictions as functions. What can't be read, as a store may hold it, allows nothing. */
export const restrictedBy = (restrictions: Restrictions): KeyRestrictions => {
  const { origins, addresses, endpoints } = restrictions
  const plain = origins?.filter(origin => !isStarred(origin)) ?? []
  const matchesStar = createStarMatch(origins?.filter(isStarred) ?? [])
  const matchesAddress = createAddressMatch(addresses?.filter(isAddressRange) ?? [])
  return {
    restrictions,
    refusal: ({ origin, endpoint }, addressOf) => {
      if (origins !== null && !(origin !== undefined && (plain.includes(origin) || matchesStar(origin))))
        return 'origin-not-allowed'
      if (addresses !== null && !matchesAddress(addressOf())) return 'address-not-allowed'
      // What is no endpoint has its own refusal, and a key may always ask about itself.
      const isEndpoint = endpoint !== 'other' && endpoint !== 'key'
      return endpoints !== null && isEndpoint && !endpoints.includes(endpoint)
        ? 'endpoint-not-allowed'
        : undefined
    },
  }
}
