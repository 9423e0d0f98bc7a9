// The count of a key in a window as this instance knows it, the requests that wait for it, and the decision that each gets.

import type { UsageStore } from '../stores/store.ts'
import type { KeyRate, RateRefusal } from './rates.ts'
import type { Window } from './window.ts'

/**
 * Whether the request is admitted, and the units left of the window after it. `tooSoon`: it is not, by a limit by the second or minute,
 * and took no unit.
 */
export type QuotaDecision = {
  readonly allowed: boolean
  readonly remaining: number
  readonly tooSoon?: RateRefusal
}

/**
 * Resumes a request that waited for its units: called once, immediately or in a later turn; with an error instead of a decision where
 * there is none. Never throws.
 */
export type DecisionCallback = (error: unknown, decision?: QuotaDecision) => void

export type Count = {
  readonly keyId: string
  readonly window: Window
  limit: number
  /** `stepOf` the limit. */
  step: number
  /** Units that requests were admitted with here, less those that were refunded. */
  admitted: number
  /** Of those, the units that the store has confirmed. */
  confirmed: number
  /** The last known count of the store, and the units admitted here until then. */
  lastKnown: { used: number; admitted: number } | undefined
  /** The `readSince` of the partition when that became known. */
  knownSince: number
  /** The highest count that other instances published since the store was asked last. */
  heard: number
  /** The last one; undefined while no request waits. */
  pending?: PendingRun | undefined
}

/** Waiting requests of a count that came one after the other and cost the same. The count's limit may change while they wait. */
export type PendingRun = {
  readonly count: Count
  /** The token buckets of a key with limits by the second and minute. */
  readonly rate: KeyRate | undefined
  readonly unitsEach: number
  readonly callbacks: DecisionCallback[]
  /** How many of them the batch requests units for. */
  requested: number
  limit: number
  /** Requests that came later, at another cost. They share the entry in the batch. */
  next: PendingRun | undefined
}

export type BatchEntry = Readonly<Omit<PendingRun, 'callbacks'>>

/** `reconciling`: the store is back, and other instances may not have reported yet what they admitted locally. */
export type MeterState = 'counting' | 'away' | 'reconciling'

/** What counting, local allowances and reconciliation of a partition share. */
export type PartitionStatus = {
  state: MeterState
  /** Whether all counts were reported since the last loss. */
  isReported: boolean
  /** Units admitted locally and confirmed by the store since it went away. */
  reconciled: number
  /** How often the store, or messages of others, were lost. */
  losses: number
  /**
   * The number of the loss after which counts are read again: others may have counted meanwhile. The next loss ignores what was
   * known of a count before; the number shows that without a visit to each count.
   */
  readSince: number
  /** The start of the latest window that had begun, or been counted in, before the last loss. */
  latestStartBefore: number
}

/** What local allowances and reconciliation need to know. */
export type OutageParts = {
  readonly store: Pick<UsageStore, 'usedOn' | 'time' | 'usageMessagesArrive'>
  /** `share`: admit from the local allowance, an equal share of what was left; `refuse`: admit nothing. */
  readonly whenStoreIsDown: 'share' | 'refuse'
  /** Whether a store that does not count may still be read, as a file on a full disk. */
  readonly isReadWhenAway?: boolean | undefined
  /** How many instances may admit requests; undefined while that is unknown. */
  readonly instances: () => number | undefined
}

export const isUnconfirmed = ({ admitted, confirmed }: Count): boolean => admitted !== confirmed

/** The units of a count over the fleet, as far as this instance knows. */
export const usedOf = ({ admitted, lastKnown }: Count): number =>
  lastKnown ? lastKnown.used + admitted - lastKnown.admitted : admitted

/**
 * Notes what the store replied. A message of a later count may come on its connection before the reply does, so no less is noted.
 * @param admitted the units admitted here that are in it
 */
export const noteUsed = (count: Count, used: number, admitted: number, readSince: number): void => {
  count.lastKnown = { used: Math.max(used, count.heard), admitted }
  count.knownSince = readSince
}

// Each count is published at 64 steps of its limit.
const stepsPerLimit = 64

/** The units between two published messages of a count. */
export const stepOf = (limit: number): number => Math.max(1, Math.ceil(limit / stepsPerLimit))
