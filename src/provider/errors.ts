// The errors of calls to the provider: what follows from the code of each, and how they quote what the provider sent. Messages are for
// operators and logs; consumers never read them.

import { AbohawaError } from '../common/errors.ts'
import { safeText } from '../common/outside-text.ts'

/** The outcome of a request, as far as its cost at the provider depends on it. */
export type RequestOutcome =
  /** A complete response: its weight. */
  | 'answered'
  /** An error response other than a reached limit: the weight that the protocol names. */
  | 'failed'
  /** The provider refused it for its limits, or it was never sent: nothing. */
  | 'limited'
  | 'unsent'
  /** No response or an incomplete one. What the provider counted is unknown: the whole weight, in every window. */
  | 'unknown'

type Handling = {
  readonly outcome: RequestOutcome
  /** Whether the same request may succeed if it is sent again within a second. */
  readonly retryable?: boolean
  /** Whether it says that the provider as a whole fails: several such errors with no success in between open the circuit. */
  readonly opensCircuit?: boolean
}

const codes = {
  /** No connection was established: nothing was sent. */
  provider_unreachable: { outcome: 'unsent', retryable: true, opensCircuit: true },
  /** This gateway could not send it: its reservation is over, or the machine can open no connection. */
  provider_not_sent: { outcome: 'unsent', retryable: true },
  /** The connection broke before the response was complete, or the response was late. */
  provider_broke_off: { outcome: 'unknown', retryable: true, opensCircuit: true },
  provider_timeout: { outcome: 'unknown', opensCircuit: true },
  /** It answers with a server error, or that it is overloaded. */
  provider_failing: { outcome: 'failed', retryable: true, opensCircuit: true },
  provider_overloaded: { outcome: 'failed', opensCircuit: true },
  /** It refuses this request, and would refuse it again. */
  provider_refused: { outcome: 'failed' },
  /** The request is for too much data. */
  provider_too_much: { outcome: 'failed' },
  /** It refuses the key, plan, host or path. Only an operator can repair that. */
  provider_denied: { outcome: 'failed', opensCircuit: true },
  /** A window of its limits is used up. */
  provider_limited: { outcome: 'limited' },
  /** The share of one consumer is used up, not the window. */
  key_share_used_up: { outcome: 'unsent' },
  /** Too many concurrent requests. */
  provider_busy: { outcome: 'limited', retryable: true },
  /** It answered 200 with an incomplete body. */
  provider_cut_off: { outcome: 'unknown', retryable: true, opensCircuit: true },
  /** Its answer does not match the request. A complete one does not open the circuit: a provider that answers is there. */
  provider_garbled: { outcome: 'unknown', opensCircuit: true },
  /** The circuit breaker is open: nothing is sent for a while. */
  provider_circuit_open: { outcome: 'unsent' },
} as const satisfies Record<string, Handling>

export type ProviderErrorCode = keyof typeof codes
/** The codes of failures that say something of one cell alone. */
export const cellCodes: ReadonlySet<string> = new Set<ProviderErrorCode>([
  'provider_refused',
  'provider_too_much',
])
export const providerErrorCodes = Object.keys(codes) as ProviderErrorCode[]

/** Why a response was refused: the label of a metric. */
export const refusedAnswers = [
  /** More bytes, depth, elements, chunks or headers than the request can need. */
  'too_large',
  'too_deep',
  'too_many_lists',
  'too_many_elements',
  'too_many_chunks',
  'too_many_interim_responses',
  /** Not complete, or not read, within the timeout of a call. */
  'too_slow',
  /** An incomplete body, one that can't be unzipped, or an encoding that was not requested. */
  'damaged',
  'wrong_encoding',
  /** A complete body with parts missing, or parts of another type or length. */
  'too_few_elements',
  'wrong_shape',
  /** Weather for another point, another time or in another unit. */
  'wrong_place',
  'wrong_time',
  'wrong_unit',
  /** Of one variable too many values that it can't have. */
  'out_of_range',
  /** A section without values. */
  'no_value',
  /** A model run whose age or computing time can't be right. */
  'wrong_run',
] as const
export type RefusedAnswer = (typeof refusedAnswers)[number]

// The message quotes the provider, and is kept for every cell that failed.
const longestMessage = 300
const longestExcerpt = 80

/** A value that the provider sent: a text as it is, any other value as JSON; both made printable and cut. */
export const excerptOf = (value: unknown, most = longestExcerpt): string =>
  safeText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing'), most)

export class ProviderError extends AbohawaError {
  override name = 'ProviderError'
  declare readonly code: ProviderErrorCode
  readonly retryable: boolean
  /** Set to false where it says nothing of the provider as a whole. */
  opensCircuit: boolean
  /** When a retry makes sense, in ms since the epoch, if the provider's response says so. */
  readonly retryAt: number | undefined
  /** Why the response was refused, if one came. */
  readonly refused: RefusedAnswer | undefined
  /** Whether the whole response was read. */
  readonly isComplete: boolean

  constructor(
    code: ProviderErrorCode,
    message: string,
    options: ErrorOptions & { retryAt?: number; refused?: RefusedAnswer; isComplete?: boolean } = {},
  ) {
    super(code, safeText(message, longestMessage), options)
    const { retryable = false, opensCircuit = false }: Handling = codes[code]
    this.retryable = retryable
    this.isComplete = options.isComplete ?? false
    this.opensCircuit = opensCircuit && !this.isComplete
    this.retryAt = options.retryAt
    this.refused = options.refused
  }
}

/** The outcome of a request that ended in this error; `unknown` for any error but a ProviderError. */
export const requestOutcomeOf = (error: unknown): RequestOutcome => {
  if (!(error instanceof ProviderError)) return 'unknown'
  return error.isComplete ? 'answered' : codes[error.code].outcome
}

/**
 * A response that does not match the request.
 * @param sentence says what was given and what is allowed
 * @param isComplete whether the whole body was read
 */
export const garbled = (refused: RefusedAnswer, sentence: string, isComplete = false): ProviderError =>
  new ProviderError('provider_garbled', sentence, { refused, isComplete })

/** Nothing was sent, for a reason of this gateway. */
export const notSent = (reason: string): ProviderError =>
  new ProviderError('provider_not_sent', `the request was not sent: ${reason}`)

/** The budget has no room. Unlike a 429 of the provider, this closes nothing. */
export class OutOfBudgetError extends ProviderError {
  override name = 'OutOfBudgetError'

  constructor(retryAt: number | null) {
    super('provider_limited', 'the provider budget has no room', retryAt === null ? {} : { retryAt })
  }
}

/** A consumer has used up its share of the budget; others have not. */
export class ShareUsedUpError extends ProviderError {
  override name = 'ShareUsedUpError'
  declare readonly retryAt: number
  readonly consumer: string

  /** @param retryAt when the share has room again, ms since the epoch */
  constructor(consumer: string, retryAt: number) {
    super('key_share_used_up', 'the key has used up its share of the provider budget', { retryAt })
    this.consumer = consumer
  }
}
