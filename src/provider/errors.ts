// What can go wrong with the provider, one code each, and whether asking again soon can help.
// Messages are for operators and logs: the edge decides what a consumer reads.

import { AbohawaError } from '../errors.ts'
import { safeText } from '../outside-text.ts'

export type ProviderErrorCode =
  /** No connection to it came about: nothing was asked. */
  | 'provider_unreachable'
  /** The connection broke before the answer was whole, or the answer did not come in time. */
  | 'provider_broke_off'
  | 'provider_timeout'
  /** It answers that it is broken or overloaded. */
  | 'provider_failing'
  | 'provider_overloaded'
  /** It refuses this request: a 400, or the empty 200 it gives for missing coordinates. */
  | 'provider_refused'
  /** It wants less data in one request. */
  | 'provider_too_much'
  /** It refuses us: key, plan, host or path. Only an operator can mend that. */
  | 'provider_denied'
  /** A window of its limits is used up. */
  | 'provider_limited'
  /** Too many of our requests at once. */
  | 'provider_busy'
  /** It answered 200 with a body that is cut off or no JSON. */
  | 'provider_cut_off'
  /** It answered complete JSON that is not what was asked for. */
  | 'provider_garbled'
  /** It has been failing, and nothing is asked of it for a while. */
  | 'provider_resting'

const helpedByRetry: ReadonlySet<ProviderErrorCode> = new Set([
  'provider_unreachable',
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

  constructor(code: ProviderErrorCode, message: string, options: ErrorOptions & { retryAt?: number } = {}) {
    super(code, safeText(message, longestMessage), options)
    this.retryable = helpedByRetry.has(code)
    this.retryAt = options.retryAt
  }
}
