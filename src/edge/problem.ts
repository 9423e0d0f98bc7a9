// What a consumer is told when a request can't be answered: a status, one sentence, and the headers that go with it.
// The table from failure codes to sentences stands here and nowhere else; no sentence quotes the provider.

import { AbohawaError } from '../errors.ts'

/** What a consumer can be refused with. */
export type ProblemStatus = 400 | 401 | 404 | 405 | 429 | 500

/** A refusal of one request; thrown by whoever finds the reason, sent by the listener. */
export class Problem extends Error {
  override name = 'Problem'
  readonly status: ProblemStatus
  readonly headers: Readonly<Record<string, string>>
  /** Nothing that follows on the connection can be trusted to be a request. */
  readonly endsConnection: boolean

  constructor(
    status: ProblemStatus,
    sentence: string,
    headers: Readonly<Record<string, string>> = {},
    endsConnection = false,
  ) {
    super(sentence)
    this.status = status
    this.headers = headers
    this.endsConnection = endsConnection
  }
}

export const badRequest = (sentence: string) => new Problem(400, sentence)
/** A request that breaks the rules of HTTP itself; its connection ends. */
export const badHttp = (sentence: string) => new Problem(400, sentence, {}, true)
export const notFound = (sentence: string) => new Problem(404, sentence)

const noWeather = 'no weather can be given for this place right now'
const sentences: Readonly<Record<string, string>> = {
  provider_unreachable: `${noWeather}: the weather provider can't be reached`,
  provider_not_asked: `${noWeather}: this gateway stood still before it could ask the weather provider`,
  provider_broke_off: `${noWeather}: the connection to the weather provider broke`,
  provider_resting: `${noWeather}: the weather provider has been failing and is given a rest`,
  provider_timeout: `${noWeather}: the weather provider did not answer in time`,
  provider_failing: `${noWeather}: the weather provider is failing`,
  provider_overloaded: `${noWeather}: the weather provider is overloaded`,
  provider_refused: `${noWeather}: the weather provider has none for this grid cell`,
  provider_too_much: `${noWeather}: the weather provider refused the size of our request`,
  provider_denied: `${noWeather}: the weather provider does not accept this gateway`,
  provider_limited: `${noWeather}: the gateway's share of the weather provider is used up`,
  provider_busy: `${noWeather}: the weather provider is busy`,
  provider_cut_off: `${noWeather}: the weather provider's answer was cut off`,
  provider_garbled: `${noWeather}: the weather provider's answer was not usable`,
  waited_too_long: `${noWeather}: the weather provider did not answer in time`,
  timeline_exhausted: `${noWeather}: what is cached ended and could not be renewed`,
  tier_not_configured:
    'the plan of this key is not configured on this gateway; only its operator can mend that',
  record_damaged: 'the record of this key is damaged on this gateway; only its operator can mend that',
  store_unavailable: 'the key or its quota could not be checked: the store of the gateway is not available',
}
const shortPauseSeconds = 10

/** The problem that a failure is for a consumer: always 500, always with the time to wait. */
export const problemOf = (error: unknown, now: number): Problem => {
  if (error instanceof Problem) return error
  const sentence =
    error instanceof AbohawaError && Object.hasOwn(sentences, error.code) ? sentences[error.code] : undefined
  const retryAt = error instanceof Error && 'retryAt' in error ? Number(error.retryAt) : Number.NaN
  const seconds = Number.isNaN(retryAt) ? shortPauseSeconds : Math.max(1, Math.ceil((retryAt - now) / 1000))
  return new Problem(500, sentence ?? 'the gateway failed unexpectedly', { 'retry-after': String(seconds) })
}
