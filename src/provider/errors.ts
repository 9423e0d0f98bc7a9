// What can go wrong with the provider, one code each, and whether asking again soon can help.
// Messages are for operators and logs: the edge decides what a consumer reads.

import { AbohawaError } from '../errors.ts'
import { safeText } from '../outside-text.ts'

export type ProviderErrorCode =
  /** No connection to it came about: nothing was asked. */
  | 'provider_unreachable'
  /** What was granted for the request no longer holds, so that it was not sent. */
  | 'provider_not_asked'
  /** The connection broke before the answer was whole, or the answer did not come in time. */
  | 'provider_broke_off'
  | 'provider_timeout'
  /** It answers that it is broken or overloaded. */
  | 'provider_failing'
  | 'provider_overloaded'
  /** It refuses this request, and would refuse it again. */
  | 'provider_refused'
  /** It wants less data in one request. */
  | 'provider_too_much'
  /** It refuses us: key, plan, host or path. Only an operator can mend that. */
  | 'provider_denied'
  /** A window of its limits is used up. */
  | 'provider_limited'
  /** Too many of our requests at once. */
  | 'provider_busy'
  /** It answered 200 with a body that is not whole. */
  | 'provider_cut_off'
  /** It answered with a whole body that is not what was asked for. */
  | 'provider_garbled'
  /** It has been failing, and the circuit breaker is open. */
  | 'provider_circuit_open'

/** What was wrong with an answer that came and was refused, in few words to count by. */
export type RefusedAnswer =
  /** More bytes, depth, elements, chunks or headers than what was asked for can need. */
  | 'too_large'
  | 'too_deep'
  | 'too_many_lists'
  | 'too_many_elements'
  | 'too_many_pieces'
  | 'too_many_interim_responses'
  /** Not whole, or not read, within the time for a call. */
  | 'too_slow'
  /** Bytes that are no whole body, can't be unzipped, or are packed in a way that was not asked for. */
  | 'damaged'
  | 'wrong_encoding'
  /** A whole body with parts missing, or parts that are of another kind or length. */
  | 'too_few_elements'
  | 'wrong_shape'
  /** Weather for another point, another time or in another unit. */
  | 'wrong_place'
  | 'wrong_time'
  | 'wrong_unit'
  /** A number that no weather has. */
  | 'out_of_range'
  /** A section without any value. */
  | 'no_value'
  /** A model run of another age, or made in another time, than any run is. */
  | 'wrong_run'

const helpedByRetry: ReadonlySet<ProviderErrorCode> = new Set([
  'provider_unreachable',
  'provider_not_asked',
  'provider_broke_off',
  'provider_failing',
  'provider_busy',
  'provider_cut_off',
])

// It quotes the provider, and is kept for every cell that failed.
const longestMessage = 300

export class ProviderError extends AbohawaError {
  override name = 'ProviderError'
  declare readonly code: ProviderErrorCode
  /** Whether the same request may succeed if sent again at once or in a second. */
  readonly retryable: boolean
  /** When asking again makes sense, in ms since the epoch, where the provider's answer tells. */
  readonly retryAt: number | undefined
  /** Where an answer came and was refused: for what. */
  readonly refused: RefusedAnswer | undefined

  constructor(
    code: ProviderErrorCode,
    message: string,
    options: ErrorOptions & { retryAt?: number; refused?: RefusedAnswer } = {},
  ) {
    super(code, safeText(message, longestMessage), options)
    this.retryable = helpedByRetry.has(code)
    this.retryAt = options.retryAt
    this.refused = options.refused
  }
}

/** An answer that came and is not what was asked for. @param sentence says what was given and what is allowed */
export const garbled = (refused: RefusedAnswer, sentence: string): ProviderError =>
  new ProviderError('provider_garbled', sentence, { refused })

/** The budget has no room: no refusal of the provider, which would stand in the way of everybody. */
export class OutOfBudgetError extends ProviderError {
  override name = 'OutOfBudgetError'

  constructor(retryAt: number | null) {
    super(
      'provider_limited',
      "the budget for the provider's limits has no room",
      retryAt === null ? {} : { retryAt },
    )
  }
}
