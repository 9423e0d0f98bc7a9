// Token buckets of keys: what a bucket holds after a while. redis/token-lua.ts computes the same in Lua.

/** A token bucket of a key: how many tokens it holds, and how many it gains in a millisecond. */
export type TokenBucket = { readonly capacity: number; readonly perMs: number }

/** A bucket that a batch takes from, by its name. `spent`: tokens that were used without the store since it was last asked. */
export type TokenEntry = TokenBucket & { readonly name: string; readonly spent: number }

/** How many requests got a token of every bucket, and what each bucket holds afterwards, with fractions. */
export type TokenGrant = { readonly taken: number; readonly left: readonly number[] }

/** A burst is at most so many seconds of the limit. */
export const longestBurstSeconds = 60

/** The tokens after so many ms; a clock that was set back refills nothing. */
export const refilled = ({ capacity, perMs }: TokenBucket, tokens: number, elapsedMs: number): number =>
  Math.min(capacity, Math.round((tokens + Math.max(0, elapsedMs) * perMs) * parts) / parts)

// Without rounding, ten tenths would not be a whole token.
const parts = 1e9
