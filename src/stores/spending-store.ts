// The part of the store's contract for the provider's budget: windows, claims and the closure, which all gateways on an account share.

import type { ShareBounds } from './fair-share.ts'

/** All that was ever charged to a window and refunded again, in whole thousandths of the provider's weight. Neither ever falls. */
export type Spent = { readonly charged: number; readonly refunded: number }

/** A rate-limit window of the provider, and what the caller knows of it. */
export type SpendingWindow = {
  /** Such as `minute:29384012`. */
  readonly name: string
  /** Null for a window that nothing is granted from now. */
  readonly limit: number | null
  /** When the window's counts may be deleted, ms since the epoch. */
  readonly keepUntil: number
  /** What the store had when it last said so: one that has less has lost it, and takes it over. */
  readonly known: Spent
  /** What the store does not have yet. */
  readonly added: Spent
  /** The bounds of one consumer in it; only the limit where absent. */
  readonly shares?: ShareBounds | undefined
}

/** The units that one consumer requests; with 0 it only counts as present. */
export type SpendingClaim = { readonly consumer: string; readonly wanted: number }

/** The provider reported a limit: no request before `until`. All instants in ms since the epoch, by the clock of who closed. */
export type Closure = { readonly until: number; readonly at: number; readonly reason: string }

export type Spending = {
  /** A short name of the account at the provider; each account has its own counts. */
  readonly provider: string
  readonly windows: readonly SpendingWindow[]
  /** For no consumer in particular. */
  readonly wanted: number
  /** Granted after that, in their order; no consumer has two. */
  readonly claims: readonly SpendingClaim[]
  /** The parts of the refunds that are the consumers', by the window's position. */
  readonly returns: readonly { readonly consumer: string; readonly window: number; readonly by: number }[]
  readonly unit: number
  /** The instant of the request, ms since the epoch. */
  readonly now: number
  /** The closure that the caller knows of, which the store takes over. */
  readonly closure: Closure | null
  /** The last reopening that the caller knows; null when it knows nothing of the provider yet. */
  readonly reopenedAt: number | null
}

/** `heldIn`: the positions of the windows that have no room for one more unit of the claim's consumer. */
type GrantedClaim = { readonly granted: number; readonly heldIn: readonly number[] }

/** What the store has after a step, in the order of the windows. `reopenedAt` is 0 without a recent reopening. */
export type SpendingReply = {
  readonly granted: number
  readonly claims: readonly GrantedClaim[]
  readonly spent: readonly Spent[]
  /** The closure in force; null when open. */
  readonly closure: Closure | null
  readonly reopenedAt: number
}

export interface SpendingStore {
  /**
   * The one step of the provider's budget, atomic over everyone who shares the store. Takes over what the caller knows and
   * adds what it reports. Then grants the largest multiple of `unit` up to `wanted` that exceeds no window's limit, and to each
   * claim what `roomOf` of fair-share.ts leaves it in every window, and charges it to all of them. Grants nothing while the
   * provider is closed. A closure from before the last reopening, from a clock that was set back since, or of an impossible length
   * has no effect.
   */
  spend(spending: Spending): Promise<SpendingReply>
  /** Ends the closure for everyone. Returns the closure that it ended, and when it was reopened: later than any time before. */
  reopen(provider: string, now: number): Promise<Pick<SpendingReply, 'closure' | 'reopenedAt'>>
}
