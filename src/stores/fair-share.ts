// How the weight of a rate-limit window is shared among the consumers whose requests load weather: what one of them may still be
// granted. redis/spending.ts computes the same in Lua.

/** The bounds of one consumer in a window, besides the window's limit. Amounts are whole thousandths of a weight. */
export type ShareBounds = {
  /** The total up to which a consumer may spend while no other consumer loads; the rest is for consumers that come later. */
  readonly soloLimit: number
  /** The maximum of one consumer while others load too. */
  readonly share: number
  /** The total up to which a consumer may go beyond its share: what no consumer has claimed of the window so far. */
  readonly pacedLimit: number
}

/** `usedBy`: by this consumer, of what is `used`. `isAlone`: no other consumer has loaded or claimed recently. */
export type WindowUse = {
  readonly limit: number
  readonly used: number
  readonly usedBy: number
  readonly isAlone: boolean
}

/** How much more a consumer may be granted; 0 or less when nothing. Without bounds, what is left. */
export const roomOf = (
  { limit, used, usedBy, isAlone }: WindowUse,
  shares: ShareBounds | undefined,
  unit: number,
): number => {
  const left = limit - used
  if (!shares) return left
  if (isAlone) return Math.min(left, shares.soloLimit - used)
  // Near the end of a limit the share shrinks: half of what the others have left is enough. A cell is little, however small it is.
  const half = Math.floor((left + usedBy) / 2)
  const own = Math.max(unit, Math.min(shares.share, half)) - usedBy
  return Math.min(left, Math.max(own, shares.pacedLimit - used))
}
