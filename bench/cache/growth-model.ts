// How costs grow with traffic, cells, keys and instances: arithmetic on measured unit costs. Every assumption stands here with
// its name; nothing is measured.

import type { UnitCosts } from './unit-costs.ts'

export type Area = {
  readonly name: string
  /** Grid cells of 0.1° with a place in them. */
  readonly cells: number
  readonly keys: number
}

/** The cost of a request at 64 connections, where cores are busy and batches are full. */
const fullConnections = 64
/** The planned utilisation of processors. */
export const plannedShare = 0.6
/** Zipf's exponent of cells, the same as of places in `traffic generate`. */
const skew = 1
/** After its last request a cell counts as in demand for so long: cache.demandFor. */
const demandForSeconds = 2 * 3600
const daySeconds = 86_400
/** Loads of a cell in demand in a day: 24 h over 66 minutes (cache.freshFor with its jitter), and the runs of a model. */
const loadsByAge = daySeconds / (66 * 60)
const loadsByRun = 4
/** Of one load with the default sections and days; docs/decisions/provider.md. */
const weightPerLoad = 3

/** How many cells are in demand at a steady rate: those with a request within `cache.demandFor`, by Zipf. */
const cellsInDemand = (requestsPerSecond: number, cells: number): number => {
  const harmonic = harmonicOf(cells)
  const expected = (rank: number): number =>
    1 - Math.exp((-requestsPerSecond * demandForSeconds) / (harmonic * rank ** skew))
  // By the logarithm of the rank: the sum over millions of ranks in some hundred terms.
  let sum = 0
  for (let from = 1; from <= cells; ) {
    const to = Math.min(cells + 1, Math.max(from + 1, Math.floor(from * 1.02)))
    sum += expected((from + to - 1) / 2) * (to - from)
    from = to
  }
  return sum
}

const harmonicOf = (count: number): number =>
  count < 1_000
    ? Array.from({ length: count }, (_, i) => 1 / (i + 1)).reduce((sum, term) => sum + term, 0)
    : Math.log(count) + 0.577_215_664_9 + 1 / (2 * count)

export type Growth = {
  readonly requestsPerSecond: number
  readonly inDemand: number
  /** Cores of gateways, busy. */
  readonly gatewayCores: number
  /** Processes of one core each, planned to `plannedShare`. */
  readonly instances: number
  readonly redisCommands: number
  readonly redisCores: number
  /** Masters of a cluster, by processor time. */
  readonly shards: number
  readonly redisBytes: number
  readonly bytesPerSecond: number
  readonly weightByAge: number
  readonly weightByRun: number
}

export const growthAt = (requestsPerSecond: number, { cells, keys }: Area, units: UnitCosts): Growth => {
  const full = units.requests.find(({ connections }) => connections === fullConnections) ?? units.requests[0]
  if (!full) throw new Error('no request was measured')
  const inDemand = cellsInDemand(requestsPerSecond, cells)
  const gatewayCores = (requestsPerSecond * full.gatewayUs) / 1e6
  const instances = Math.max(2, Math.ceil(gatewayCores / plannedShare))
  const redisCommands = requestsPerSecond * full.redisCommands + instances * units.idleCommands
  // Commands of idle gateways cost Redis what those of requests cost it.
  const usPerCommand = full.redisUs / full.redisCommands
  const redisCores = (redisCommands * usPerCommand) / 1e6
  return {
    requestsPerSecond,
    inDemand,
    gatewayCores,
    instances,
    redisCommands,
    redisCores,
    shards: Math.max(1, Math.ceil(redisCores / plannedShare)),
    redisBytes: inDemand * units.bytesPerCell + keys * units.bytesPerKey,
    bytesPerSecond: requestsPerSecond * units.bytesGzip,
    weightByAge: inDemand * loadsByAge * weightPerLoad,
    weightByRun: inDemand * loadsByRun * weightPerLoad,
  }
}
