// Statistics of traffic: times, endpoints, keys, outcomes, reuse. One pass, bounded memory.

import { hasWeather } from 'abohawa/common/endpoints.ts'
import { type CellOf, endpointOf, placeOf, recordedCell } from '../endpoint-of-path.ts'
import { createGaps } from '../gaps.ts'
import type { TrafficRequest } from '../traffic-request.ts'
import { createPopularity } from './popularity.ts'
import { createRateOverTime } from './rate-over-time.ts'
import { createReuse } from './reuse.ts'

export type Subject = 'cell' | 'place' | 'path' | 'key'

export type TrafficStats = ReturnType<ReturnType<typeof createTrafficStats>['stats']>

/** @param by the object of reuse; for `cell` without a catalogue, the place */
export const createTrafficStats = (by: Subject, top: number, cellOf: CellOf = recordedCell) => {
  // With a catalogue, a place without a cell is unknown.
  const knowsCells = cellOf !== recordedCell
  const rate = createRateOverTime()
  const gaps = createGaps()
  const counters = { endpoints: {}, methods: {}, statuses: {}, outcomes: {}, tiers: {} }
  const [places, cells, paths, keys] = [
    createPopularity(),
    createPopularity(),
    createPopularity(),
    createPopularity(),
  ]
  const reuse = createReuse()
  const sums = { requests: 0, conditional: 0, compressed: 0 }
  const bytes = { requests: 0, sum: 0 }
  const span: { from: number | null; to: number | null } = { from: null, to: null }

  const add = (request: TrafficRequest): void => {
    const { at, method, path, key, accepts, conditional, status, outcome, tier } = request
    sums.requests += 1
    span.from = Math.min(at, span.from ?? at)
    span.to = Math.max(at, span.to ?? at)
    rate.add(at)
    const endpoint = endpointOf(path)
    count(counters.endpoints, endpoint)
    count(counters.methods, method)
    count(counters.statuses, status)
    count(counters.outcomes, outcome)
    count(counters.tiers, tier)
    if (conditional) sums.conditional += 1
    if (accepts !== undefined && /\b(?:br|gzip)\b/.test(accepts)) sums.compressed += 1
    if (request.bytes !== undefined) {
      bytes.requests += 1
      bytes.sum += request.bytes
    }
    const isWeather = hasWeather(endpoint) && !(status !== undefined && isRefusal(status))
    const place = isWeather ? placeOf(path) : undefined
    const cell = isWeather ? cellOf(request) : undefined
    if (place !== undefined) places.add(place)
    if (cell !== undefined) cells.add(cell)
    paths.add(path)
    if (key !== undefined) keys.add(key)
    const object = { cell: cell ?? (knowsCells ? undefined : place), place, path, key }[by]
    if (object !== undefined) reuse.add(object, at)
  }

  return {
    async *pass(batches: AsyncIterable<readonly TrafficRequest[]>) {
      for await (const batch of gaps.pass(batches)) {
        for (const request of batch) add(request)
        yield batch
      }
    },
    stats: () => ({
      requests: sums.requests,
      ...span,
      rate: { ...rate.series(), peak: rate.peak() },
      gaps: gaps.found(),
      ...(counters as Readonly<Record<keyof typeof counters, Readonly<Record<string, number>>>>),
      conditional: sums.conditional,
      compressed: sums.compressed,
      bytes,
      places: places.report(top),
      cells: cells.report(top),
      paths: paths.report(top),
      keys: keys.report(top),
      reuse: { by, ...reuse.report() },
    }),
  }
}

/** Refused before weather was read. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 499

// Methods and tiers come from files, so their number is bounded.
const maxNames = 50

const count = (counts: Record<string, number>, name: string | number | undefined): void => {
  if (name === undefined) return
  const before = counts[name]
  if (before !== undefined) counts[name] = before + 1
  else {
    const kept = Object.keys(counts).length < maxNames ? name : 'others'
    counts[kept] = (counts[kept] ?? 0) + 1
  }
}
