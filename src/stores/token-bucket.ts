// Token buckets of keys: what a store does with them, what a bucket holds, and what it grants. A gateway that is alone and the embedded
// store compute it here. The Lua of redis/tokens.ts says the same, and must stay the same.

/** A token bucket of a key: how many tokens it holds, and how many it gains in a millisecond. */
export type TokenBucket = { readonly capacity: number; readonly perMs: number }

/** What an instance wants of the buckets of a key. A token is taken out of all of them. */
export type TokenRequest = {
  readonly keyId: string
  /** `spent`: tokens that were used without the store; below 0 for those that are given back. */
  readonly buckets: readonly (TokenBucket & { readonly name: string; readonly spent: number })[]
  /** Tokens for requests that wait. */
  readonly wanted: number
  /** Tokens for requests to come: at most the share of what is left behind `wanted`. */
  readonly ahead: number
  readonly share: number
}

/** `left` has what each bucket holds afterwards, with fractions. */
export type TokenGrant = { readonly granted: number; readonly left: readonly number[] }

export interface TokenStore {
  /**
   * Takes tokens of a key, by the store's clock and in one atomic step over all instances. Buckets that are unknown or damaged are
   * full. @throws StoreError
   */
  takeTokens(request: TokenRequest): Promise<TokenGrant>
}

/** A bucket is full after so many seconds at most: what is known of a key that sends nothing is forgotten then. */
export const longestBurstSeconds = 60

/** The tokens after so many ms; a clock that was set back refills nothing. */
export const refilled = ({ capacity, perMs }: TokenBucket, tokens: number, elapsedMs: number): number =>
  Math.min(capacity, Math.round((tokens + Math.max(0, elapsedMs) * perMs) * parts) / parts)

// Ten tenths are a whole token.
const parts = 1e9

/** How many tokens are granted where the emptiest bucket of the key holds so many. */
export const tokensGranted = (
  { wanted, ahead, share }: Pick<TokenRequest, 'wanted' | 'ahead' | 'share'>,
  held: number,
): number => {
  const free = Math.floor(held)
  return free < wanted ? free : wanted + Math.floor(Math.min(ahead, (free - wanted) * share))
}
