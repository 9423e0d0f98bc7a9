// The interface of a provider's protocol: requests for cells, their weight, decoding a body into timelines, the meaning of
// refusals, and model runs. The client, the budget, the breaker and the timelines know a provider only by this type.

import type { Clock } from '../common/clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { ProviderError } from './errors.ts'

/** A GET request, without host and key. */
export type ProviderRequest = {
  /** Path and query, appended to the provider's base URL. */
  readonly path: string
  /** The maximum size of the response body, both compressed and uncompressed. */
  readonly maxBytes: number
}

/** Values of one variable that the provider can't mean, and that are left out. */
export type OddValues = {
  readonly variable: string
  /** Its section in the body. */
  readonly section: string
  readonly count: number
  /** The first of them, cut, and what is allowed. */
  readonly value: string
  readonly allowed: string
}

/** A request for cells, with the decoder of its body: what is requested may change while it is under way. */
type CellsRequest = ProviderRequest & {
  /**
   * The timeline of each cell in the order of the request, or the error of its part of the body.
   * @param body the unzipped bytes, in chunks of any size
   * @param requestedAt when the request was sent, ms since the epoch
   * @param onOdd called for each variable of a cell with values that are left out
   * @throws ProviderError when the whole body is unusable; it is read no further then
   */
  decode(
    body: AsyncIterable<Uint8Array>,
    requestedAt: number,
    clock: Clock,
    onOdd: (odd: OddValues) => void,
  ): Promise<readonly (Timeline | ProviderError)[]>
}

/** A run, in ms since the epoch: the time it computes from, when it became available, and the time between two. */
export type ModelRun = {
  readonly initialisedAt: number
  readonly availableAt: number
  readonly intervalMs: number
}

/** Headers and refusals: the part of the protocol that one HTTP call needs. */
export type CallProtocol = {
  /** The media type that the decoders read, for the header `accept`. */
  readonly accept: string
  /** The headers that carry the key, so that it is never in a URL, a log line or an error. */
  keyHeaders(apiKey: string): Readonly<Record<string, string>>
  /**
   * The error for a response other than 200.
   * @param body its text, cut to some kilobytes; empty if it can't be read
   * @param now when the response came, ms since the epoch
   */
  refusalOf(status: number, body: string, now: number): ProviderError
}

/** Reads what a provider publishes about its model runs. */
export type RunProtocol = {
  requestFor(model: string): ProviderRequest
  /** @throws ProviderError when the text describes no run, or one that can't be right. */
  decode(text: string, now: number): ModelRun
}

/** The query parameters that a path takes, by their form. */
export type PathParameters = {
  /** Lists, which may also be given several times. */
  readonly lists: readonly string[]
  /** Whole numbers. */
  readonly counts: readonly string[]
  /** Days and hours such as `2026-01-31` and `2026-01-31T06:00`, also as lists. */
  readonly dates: readonly string[]
  /** Single values. */
  readonly choices: readonly string[]
}

/** The requests that an operator may pass through the gateway to the provider. */
export type PassthroughProtocol = {
  /** The allowed paths, for error messages. */
  readonly paths: readonly string[]
  readonly examplePath: string
  /** The parameter in which a caller may have given a key; it is removed. */
  readonly keyParameter: string
  /** The query parameters of a path, as written in a URL; undefined if the path is not allowed. */
  parametersOf(path: string): PathParameters | undefined
  /** The weight of a request over all its points; 0 if the provider does not count it. */
  weightOf(path: string, parameters: ReadonlyMap<string, string>): number
}

export type ProviderProtocol = CallProtocol & {
  /** The parameters that are the same for every cell and horizon, as text: part of the cache namespace, so that a change misses. */
  readonly identity: string
  /** The maximum number of cells in one request. */
  readonly maxCellsPerRequest: number
  /** The weight of a successful request for each cell, which counts against the provider's limits. */
  readonly weightPerCell: number
  /** The weight of a request that the provider answers with an error. */
  readonly weightOfFailure: number
  /** The least backoff after `provider_busy`. */
  readonly busyPauseMs: number
  requestFor(cells: readonly Cell[]): CellsRequest
  readonly runs: RunProtocol
  readonly passthrough: PassthroughProtocol
}
