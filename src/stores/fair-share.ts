// How the weight of a rate-limit window is shared among the consumers whose requests load weather: what one of them may
// still be granted. Pure. redis/spending.ts computes the same in Lua, and the contract of stores holds both to it.

/** The bounds of one consumer in a window, beside the window's limit. Amounts are whole thousandths of a weight. */
export type ShareBounds = {
  /** The total up to which anyone may spend; what lies between it and the limit is for those who loaded little. */
  readonly open: number
  /** The most of one consumer while others load too. */
  readonly share: number
  /** The total up to which a consumer may go beyond its share: what nobody wanted of the window so far. */
  readonly paced: number
  /** A consumer that was granted no more than this may use what lies behind `open`. */
  readonly little: number
}

/** `usedBy`: by this consumer, of what is `used`. `isAlone`: nobody else has loaded, or asked of late. */
export type WindowUse = {
  readonly limit: number
  readonly used: number
  readonly usedBy: number
  readonly isAlone: boolean
}

/** How much more a consumer may be granted; 0 or less when nothing. */
export const roomOf = (
  { limit, used, usedBy, isAlone }: WindowUse,
  { open, share, paced, little }: ShareBounds,
): number => {
  // Near the end of a limit the share shrinks: half of what the others have left is enough.
  const own = Math.min(share, Math.floor((limit - (used - usedBy)) / 2)) - usedBy
  const fair = isAlone ? open - used : Math.max(own, paced - used)
  return Math.max(Math.min(open - used, fair), Math.min(limit - used, little - usedBy))
}

/** Bounds that bound nobody below the limit. */
export const unshared = (limit: number): ShareBounds => ({
  open: limit,
  share: limit,
  paced: limit,
  little: 0,
})

/** Bounds of a part of the window. @param by 0 to 1 */
export const scaled = ({ open, share, paced, little }: ShareBounds, by: number): ShareBounds => ({
  open: open * by,
  share: share * by,
  paced: paced * by,
  little: little * by,
})
