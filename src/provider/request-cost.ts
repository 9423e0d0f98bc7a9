// The cost of a request at the provider, by its outcome: a complete response costs its weight, a failure the weight that the
// protocol names, a 429 nothing. An unknown outcome costs the whole weight. Pure.

import { ProviderError, type ProviderErrorCode } from './errors.ts'

/** The outcome of a request, as far as its cost depends on it. */
export type RequestOutcome =
  /** A complete response. */
  | 'answered'
  /** An error response other than a reached limit. */
  | 'failed'
  /** The provider refused it for its limits. */
  | 'limited'
  /** It was never sent. */
  | 'unsent'
  /** No response or an incomplete one: what the provider counted is unknown. */
  | 'unknown'

/** How much of the reserved weight was spent, given the weight of a failure; all in thousandths. */
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
  provider_not_sent: 'unsent',
  provider_broke_off: 'unknown',
  provider_circuit_open: 'unsent',
  provider_timeout: 'unknown',
  provider_failing: 'failed',
  provider_overloaded: 'failed',
  provider_refused: 'failed',
  provider_too_much: 'failed',
  provider_denied: 'failed',
  provider_limited: 'limited',
  key_share_used_up: 'unsent',
  provider_busy: 'limited',
  provider_cut_off: 'unknown',
  provider_garbled: 'unknown',
}

/** The outcome of a request that ended in this error; `unknown` for any other error. */
export const requestOutcomeOf = (error: unknown): RequestOutcome =>
  error instanceof ProviderError ? (outcomes[error.code] ?? 'unknown') : 'unknown'
