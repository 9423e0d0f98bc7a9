// A consumer's share of a window of the provider's limits, by settings and the time of the window: the bounds that the
// stores apply (stores/fair-share.ts), and when a consumer that they hold back may go on. Pure.

import { type LimitedWindow, milliAllowed } from './spending-windows.ts'

export type ShareSettings = {
  /** The share of every limit, 0 to 1, that only cold cells may use. */
  readonly reserve: number
  /** The share of every limit, 0 to 1, that one consumer may use while others load too; 1 bounds nobody. */
  readonly consumerShare: number
  /**
   * The share of every limit, 0 to 1, that is set aside for gateways without the store; null where no other process shares
   * the store.
   */
  readonly outageShare: number | null
}

// Of the reserve, the part that a consumer leaves that is alone, for those that come later.
const keptBackShare = 0.5

// About a request to the provider.
const inFlightMs = 250

const portionOf = ({ limit }: LimitedWindow, part: number): number => milliAllowed((limit / 1000) * part)

/** A window less what is set aside of it. Of a small limit nothing is: less than a cell is of use to nobody. */
export const withAside = (
  window: LimitedWindow,
  { outageShare }: Pick<ShareSettings, 'outageShare'>,
  unit: number,
): LimitedWindow => {
  if (outageShare === null) return window
  const wanted = portionOf(window, outageShare)
  const aside = wanted < unit ? 0 : wanted
  return { ...window, limit: window.limit - aside, aside }
}

/** A window as it bounds a purpose: its limit, and the bounds of one consumer. @param unit a cell, in thousandths of a weight */
export const boundedFor = (
  purpose: 'cold' | 'refresh',
  whole: LimitedWindow,
  settings: ShareSettings,
  unit: number,
  now: number,
): LimitedWindow => {
  const { reserve, consumerShare } = settings
  const window = withAside(whole, settings, unit)
  const unreserved = portionOf(window, 1 - reserve)
  const isCold = purpose === 'cold'
  const kept = isCold ? portionOf(window, reserve * keptBackShare) : 0
  const limit = isCold ? window.limit : unreserved
  const bounded = { ...window, limit }
  if (!isCold && window.aside) bounded.aside = Math.floor(window.aside * (1 - reserve))
  if (consumerShare >= 1) return bounded
  return {
    ...bounded,
    shares: {
      // With a small limit, a part of less than one cell is useless.
      open: limit - (kept < unit ? 0 : kept),
      share: portionOf(window, consumerShare),
      paced: Math.floor(unreserved * elapsedOf(window, now)),
    },
  }
}

/** How much of a window is over, 0 to 1. */
const elapsedOf = ({ beginsAt, endsAt }: LimitedWindow, now: number): number =>
  Math.min(1, Math.max(0, (now - beginsAt) / (endsAt - beginsAt)))

/**
 * When a consumer without room in these windows may go on: when each is over, or has gone on for long enough for what is
 * spent. Null without windows. @param used and `unit`, in thousandths of a weight
 */
export const heldUntil = (
  windows: readonly LimitedWindow[],
  { reserve }: Pick<ShareSettings, 'reserve'>,
  used: (window: LimitedWindow) => number,
  unit: number,
  now: number,
): number | null => {
  const ends = windows.map(window => {
    const { beginsAt, endsAt } = window
    // Taken by requests in flight alone, which give it back when they end.
    if (beginsAt > now) return now + inFlightMs
    const pacedAt = beginsAt + ((endsAt - beginsAt) * (used(window) + unit)) / portionOf(window, 1 - reserve)
    return Math.min(endsAt, Math.max(now + 1, Math.ceil(pacedAt)))
  })
  return ends.length === 0 ? null : Math.max(...ends)
}
