// What the gateway has to know of a provider's protocol, as one type: how cells are asked for, what a request weighs, how
// a body becomes timelines, what a refusal means, how model runs are read. The client, the budget, the breaker and the
// timelines know this type alone; which protocol stands behind it is chosen where the gateway is put together.

import type { Clock } from '../clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { ProviderError } from './errors.ts'

/** A GET request, apart from the host and the key. */
export type ProviderRequest = {
  /** Path and query, to be put behind the provider's base URL. */
  readonly path: string
  /** What the body of its answer may have at most, unzipped and as it travels. */
  readonly mostBytes: number
}

/** What a body is checked against. */
type RequestedCells = {
  /** In the order of the request. */
  readonly cells: readonly Cell[]
  /** When the request was sent, ms since the epoch. */
  readonly askedAt: number
  readonly clock: Clock
}

/** A run, in ms since the epoch: the time it computes from, when it became available, and the time between two. */
export type ModelRun = {
  readonly initialisedAt: number
  readonly availableAt: number
  readonly intervalMs: number
}

/** Headers and refusals: all that one HTTP call depends on. */
export type CallProtocol = {
  /** The media type that the decoders read, for the header `accept`. */
  readonly accept: string
  /** The headers that carry the key. In headers, so that it never stands in a URL, a log line or an error. */
  keyHeaders(apiKey: string): Readonly<Record<string, string>>
  /**
   * What an answer other than 200 means.
   * @param body its text, cut to some kilobytes; empty where it can't be read
   * @param now when the answer came, ms since the epoch
   */
  refusalOf(status: number, body: string, now: number): ProviderError
}

/** Reads what a provider publishes about its model runs. */
export type RunProtocol = {
  requestFor(model: string): ProviderRequest
  /** @throws ProviderError when the text is not about a run, or the run can't be as it says. */
  decode(text: string, now: number): ModelRun
}

/** The parameters that a path takes, by how they are given. */
export type PathParameters = {
  /** Lists, which may also be given several times. */
  readonly lists: readonly string[]
  /** Whole numbers. */
  readonly counts: readonly string[]
  /** Single words. */
  readonly choices: readonly string[]
}

/** What an operator may ask of the provider through the gateway. */
export type PassthroughProtocol = {
  /** The allowed paths in words, for sentences that name them; the one most asked for first. */
  readonly paths: readonly [string, ...string[]]
  /** The parameter in which a caller may have given a key: it is left out. */
  readonly keyParameter: string
  /** The parameters of a path; undefined where the path is not allowed. */
  parametersOf(path: string): PathParameters | undefined
  /** What the provider counts for a request, over all its points; 0 where it counts nothing. */
  weightOf(path: string, parameters: ReadonlyMap<string, string>): number
}

export type ProviderProtocol = CallProtocol & {
  /** What is asked about every cell, as text: cached timelines are of use as long as it stays the same. */
  readonly identity: string
  /** How many cells one request can ask for. */
  readonly mostCellsPerRequest: number
  /** What an answered request counts against the provider's limits, for each cell. */
  readonly weightPerCell: number
  /** What a request counts that the provider answers with an error, whatever it asked for. */
  readonly weightOfFailure: number
  /** How long to wait at least after `provider_busy`. */
  readonly busyPauseMs: number
  requestFor(cells: readonly Cell[]): ProviderRequest
  /**
   * For each cell in the order of the request its timeline, or what is wrong with its part of the body.
   * @param body its unzipped bytes as they come, cut anywhere
   * @throws ProviderError when the body as a whole can't be used; it is read no further then
   */
  decode(
    body: AsyncIterable<Uint8Array>,
    requested: RequestedCells,
  ): Promise<readonly (Timeline | ProviderError)[]>
  readonly runs: RunProtocol
  readonly passthrough: PassthroughProtocol
}
