// What a request turned out to cost at the provider, by how it ended: a whole answer its weight, a failure what the
// protocol says, one that the limits refused nothing. Where that can't be known, all of it is taken to be spent. Pure.

import { ProviderError, type ProviderErrorCode } from './errors.ts'

/** How a request ended, as far as its cost goes. */
export type RequestOutcome =
  /** A whole answer came. */
  | 'answered'
  /** The provider answered with an error other than that a limit is reached. */
  | 'failed'
  /** The provider refused it because of its limits. */
  | 'limited'
  /** It was never sent. */
  | 'unsent'
  /** No answer or half of one: nobody knows what was counted. */
  | 'unknown'

/** What of the reserved weight was spent, given what a failure weighs; all in thousandths. */
export const costOf = (outcome: RequestOutcome, reserved: number, failure: number): number => {
  switch (outcome) {
    case 'answered':
    case 'unknown':
      return reserved
    case 'failed':
      return Math.min(failure, reserved)
    case 'limited':
    case 'unsent':
      return 0
  }
}

const outcomes: Readonly<Record<ProviderErrorCode, RequestOutcome>> = {
  provider_unreachable: 'unsent',
  provider_not_asked: 'unsent',
  provider_broke_off: 'unknown',
  provider_circuit_open: 'unsent',
  provider_timeout: 'unknown',
  provider_failing: 'failed',
  provider_overloaded: 'failed',
  provider_refused: 'failed',
  provider_too_much: 'failed',
  provider_denied: 'failed',
  provider_limited: 'limited',
  provider_busy: 'limited',
  provider_cut_off: 'unknown',
  provider_garbled: 'unknown',
}

/** The outcome of a request that ended in this error; of any other error nothing is known. */
export const outcomeOf = (error: unknown): RequestOutcome =>
  error instanceof ProviderError ? (outcomes[error.code] ?? 'unknown') : 'unknown'
