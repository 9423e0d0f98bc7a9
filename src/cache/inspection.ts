// What the cache holds, for operators: one cell in both tiers, the state and demand of cells, and when those in demand expire if
// nothing is loaded any more. Reads alone; nothing counts as a request.

import { AbohawaError } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { CacheParts } from './cache-parts.ts'
import { expiryOfDemand, firstExpiry } from './demand-expiry.ts'
import type { FleetDemand } from './fleet-demand.ts'
import { type Entry, type EntryFacts, factsOf, freshnessOf } from './freshness.ts'
import type { ReadThrough } from './read-through.ts'

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof AbohawaError && error.code === code

export const createInspection = (
  { memory, shared, keyOf, policy, purges, failures, uncached, demand, clock }: CacheParts<Cell, Timeline>,
  cache: ReadThrough<Cell, Timeline>,
  fleetDemand: FleetDemand,
) => ({
  /** The size of the memory tier. */
  cached: () => ({ entries: memory.size, bytes: memory.calculatedSize }),
  /**
   * When the first cell in demand can't be served any more if nothing is loaded: 0 where one has nothing cached, in the past
   * where one has expired; undefined where nothing is known of any. A cell that the provider refuses does not count, because it
   * has errors anyway.
   * @param whose `cached`: a cell with nothing cached decides only where nothing in demand is cached
   */
  firstExpiryAt: (whose?: 'any' | 'cached'): number | undefined => {
    const isUncached = (id: string) =>
      uncached.has(id) && !hasCode(failures.last(id)?.error, 'provider_refused')
    return firstExpiry({ memory, isUncached, policy }, fleetDemand.ids(), clock.now(), whose)
  },
  /** The age at which the weather of cells in demand expires, by the settings and by the timelines that were fetched. */
  coverage: () => {
    const now = clock.now()
    // Cells that were in demand before the start have no requests here yet.
    const demanded = Array.from(fleetDemand.ids(), id => [id, demand.scoreOf(id, now) || 1] as const)
    return expiryOfDemand(memory, policy.longestUseMs, demanded)
  },
  /** How many cells back off, by the code of their last failure. */
  backoffs: failures.backoffs,
  /** What the tiers hold of a cell. */
  explain: async (cell: Cell) => {
    const { id } = cell
    const facts = (entry: Entry<Timeline> | undefined): EntryFacts | null =>
      factsOf(entry, policy, clock.now(), entry && purges.of(id, entry))
    return {
      memory: facts(memory.peek(id)),
      shared: facts(await shared.get(keyOf(cell))),
      lastFailure: failures.last(id) ?? null,
      loading: cache.isLoading(cell),
      lastRequestedAt: demand.of(id)?.lastRequestedAt ?? null,
    }
  },
  /** The timeline of a cell in memory. */
  timelineOf: ({ id }: Cell): Timeline | undefined => memory.peek(id)?.value,
  /**
   * The state of a cell in memory. `failed`: the last load failed, and nothing fresh is there. `fetchedAt` is null where there is
   * nothing; `demand` is the decayed count of requests.
   */
  overview: ({ id }: Cell) => {
    const now = clock.now()
    const entry = memory.peek(id)
    const state = entry ? freshnessOf(entry, policy, now, entry.purged) : 'expired'
    const cached = state === 'expired' ? ('absent' as const) : state
    return {
      state: cached !== 'fresh' && failures.last(id) ? ('failed' as const) : cached,
      fetchedAt: entry?.fetchedAt ?? null,
      demand: demand.scoreOf(id, now),
    }
  },
  /** The cells with the most requests here, most first. */
  mostRequested: (most: number): { readonly cell: Cell; readonly requests: number }[] =>
    demand
      .since(fleetDemand.since())
      .map(({ key, subject }) => ({ cell: subject, requests: demand.scoreOf(key, clock.now()) }))
      .sort((one, other) => other.requests - one.requests)
      .slice(0, most),
})
