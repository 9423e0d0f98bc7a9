// What is charged for a request before it is sent, and how the charge is corrected once the request has ended.

import type { RequestOutcome } from './errors.ts'
import type { LimitedWindow } from './spending-windows.ts'

/** `cold`: a consumer waits and nothing is cached. `refresh`: something older could be served. */
export type Purpose = 'cold' | 'refresh'

/** Points that one consumer wants; 0 says that it is present, so that no other consumer counts as the only one. */
export type Claim = { readonly consumer: string; readonly points: number }

export type Reservation = {
  /** For no consumer in particular. */
  readonly points: number
  /** For each claim. `throttledUntil`: when its consumer's share has room again, ms since the epoch; null where that is no obstacle. */
  readonly claims: readonly { readonly points: number; readonly throttledUntil: number | null }[]
  /** When more may be reserved, ms since the epoch; null when all was granted. */
  readonly retryAt: number | null
  /**
   * Whether the request may be sent now; to be called right before. False when so much time has passed that the provider
   * may count it in a window that it was not charged to.
   */
  isValid(): boolean
  /**
   * The provider answered the request with a limit: no gateway of the account that it was sent for sends one before this
   * instant, unless an operator reopens the budget. @param reason for operators
   */
  limited(until: number, reason: string): Promise<void>
  /** Settles the cost once the request has ended, however it did. Only the first call has an effect. */
  settle(outcome: RequestOutcome): Promise<void>
}

/** The weight of a request in each of the windows that the provider may count it in, in whole thousandths. */
export type Charge = {
  readonly weight: number
  /** Granted without the store. */
  readonly isLocal: boolean
  /** The parts of it that are the consumers'. */
  readonly consumers: readonly { readonly consumer: string; readonly weight: number }[]
  readonly windows: readonly LimitedWindow[]
}

/** What a window was charged too much (below 0) or too little, with the parts of it that are the consumers'. */
export type Correction = {
  readonly window: LimitedWindow
  readonly by: number
  readonly consumers?: readonly { readonly consumer: string; readonly by: number }[]
}

/**
 * @param ended at an instant, on a clock that differs from the provider's by up to `marginMs`, in these windows; `failure` is the
 * weight of a request that the provider answers with an error
 */
export const correctionsOf = (
  { weight, windows, consumers }: Charge,
  outcome: RequestOutcome,
  ended: {
    readonly at: number
    readonly in: readonly LimitedWindow[]
    readonly marginMs: number
    readonly failure: number
  },
): Correction[] => {
  const { at, marginMs, failure } = ended
  const cost = {
    answered: weight,
    unknown: weight,
    failed: Math.min(failure, weight),
    limited: 0,
    unsent: 0,
  }[outcome]
  // The provider may count a request of unknown outcome later.
  const costIn = ({ beginsAt }: LimitedWindow) =>
    beginsAt > at + marginMs && outcome !== 'unknown' ? 0 : cost
  const charged = new Set(windows.map(({ name }) => name))
  return [
    // Corrects windows that are not over yet.
    ...windows
      .filter(({ endsAt }) => endsAt + marginMs > at)
      .map(window => ({ window, by: costIn(window) - weight }))
      .map(change => ({ ...change, consumers: partsOf(change.by / weight, consumers) })),
    // Charges windows that the request reached because the process was suspended.
    ...ended.in.filter(({ name }) => !charged.has(name)).map(window => ({ window, by: cost })),
  ].filter(({ by }) => by !== 0)
}

/** Each consumer's part of a change that is `by` times the whole. */
const partsOf = (by: number, consumers: Charge['consumers']) =>
  consumers.map(({ consumer, weight }) => ({ consumer, by: Math.trunc(by * weight) }))
