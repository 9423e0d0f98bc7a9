// Statistics of traffic: times, endpoints, keys, outcomes, and the best possible hit share. One pass, bounded memory.

import { hasWeather } from '../../../common/endpoints.ts'
import { type CellOf, recordedCell } from '../cell-of-place.ts'
import { endpointOf, placeOf } from '../endpoint-of-path.ts'
import { createGaps, type Gaps } from '../gaps.ts'
import type { TrafficRequest } from '../traffic-request.ts'
import { createPopularity, type PopularityReport } from './popularity.ts'
import { createRateOverTime, type Peak, type RateOverTime } from './rate-over-time.ts'
import { createReuse, type ReuseReport } from './reuse.ts'

/** The objects of a cache. */
export type Subject = 'cell' | 'place' | 'path' | 'key'

export type TrafficStats = {
  readonly requests: number
  /** The first and the last instant; null without requests. */
  readonly from: number | null
  readonly to: number | null
  readonly rate: ReturnType<RateOverTime['series']> & { readonly peak: Peak | null }
  readonly gaps: ReturnType<Gaps['found']>
  readonly endpoints: Readonly<Record<string, number>>
  readonly methods: Readonly<Record<string, number>>
  readonly statuses: Readonly<Record<string, number>>
  readonly outcomes: Readonly<Record<string, number>>
  readonly tiers: Readonly<Record<string, number>>
  readonly conditional: number
  /** Requests that take br or gzip. */
  readonly compressed: number
  readonly bytes: { readonly requests: number; readonly sum: number }
  readonly places: PopularityReport
  readonly cells: PopularityReport
  readonly paths: PopularityReport
  readonly keys: PopularityReport
  /** Of weather and forecasts by cell, or by place where no catalogue gives the cells; else of what was chosen. */
  readonly reuse: ReuseReport & { readonly by: Subject }
}

const reportedGapMs = 5 * 60_000

/** Counts what passes; `stats` may be called at any time. */
export const createTrafficStats = (by: Subject, top: number, cellOf: CellOf = recordedCell) => {
  // With a catalogue, a place without a cell is none.
  const knowsCells = cellOf !== recordedCell
  const rate = createRateOverTime()
  const gaps = createGaps(reportedGapMs)
  const counters = { endpoints: {}, methods: {}, statuses: {}, outcomes: {}, tiers: {} }
  const of = {
    places: createPopularity(),
    cells: createPopularity(),
    paths: createPopularity(),
    keys: createPopularity(),
  }
  const reuse = createReuse()
  const sums = { requests: 0, conditional: 0, compressed: 0, withBytes: 0, bytes: 0 }
  let from: number | null = null
  let to: number | null = null

  const add = (request: TrafficRequest): void => {
    const { at, method, path, key, accepts, conditional, status, outcome, tier, bytes } = request
    sums.requests += 1
    from = Math.min(at, from ?? at)
    to = Math.max(at, to ?? at)
    rate.add(at)
    const endpoint = endpointOf(path)
    count(counters.endpoints, endpoint)
    count(counters.methods, method)
    if (status !== undefined) count(counters.statuses, String(status))
    if (outcome !== undefined) count(counters.outcomes, outcome)
    if (tier !== undefined) count(counters.tiers, tier)
    if (conditional) sums.conditional += 1
    if (accepts !== undefined && /\b(?:br|gzip)\b/.test(accepts)) sums.compressed += 1
    if (bytes !== undefined) {
      sums.withBytes += 1
      sums.bytes += bytes
    }
    const isWeather = hasWeather(endpoint) && !(status !== undefined && isRefusal(status))
    const place = placeOf(path)
    const cell = isWeather ? cellOf(request) : undefined
    if (isWeather) of.places.add(place)
    if (cell !== undefined) of.cells.add(cell)
    of.paths.add(path)
    if (key !== undefined) of.keys.add(key)
    const object = {
      cell: cell ?? (isWeather && !knowsCells ? place : undefined),
      place: isWeather ? place : undefined,
      path,
      key,
    }
    const chosen = object[by]
    if (chosen !== undefined) reuse.add(chosen, at)
  }

  return {
    async *pass(batches: AsyncIterable<readonly TrafficRequest[]>) {
      for await (const batch of gaps.pass(batches)) {
        for (const request of batch) add(request)
        yield batch
      }
    },
    stats: (): TrafficStats => ({
      requests: sums.requests,
      from,
      to,
      rate: { ...rate.series(), peak: rate.peak() },
      gaps: gaps.found(),
      ...counters,
      conditional: sums.conditional,
      compressed: sums.compressed,
      bytes: { requests: sums.withBytes, sum: sums.bytes },
      places: of.places.report(top),
      cells: of.cells.report(top),
      paths: of.paths.report(top),
      keys: of.keys.report(top),
      reuse: { by, ...reuse.report() },
    }),
  }
}

/** Answered before any weather was looked for. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 499

// Of methods and tiers, which come from files, so many different ones.
const maxNames = 50

const count = (counts: Record<string, number>, name: string): void => {
  const before = counts[name]
  if (before !== undefined) counts[name] = before + 1
  else {
    const kept = Object.keys(counts).length < maxNames ? name : 'others'
    counts[kept] = (counts[kept] ?? 0) + 1
  }
}
