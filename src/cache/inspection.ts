// What operators see of the cache: a cell in both tiers, the state and demand of cells, and when cells in demand expire if no load
// succeeds. Nothing here counts as a request. Expiry reads memory only: an entry that only the shared tier holds counts as usable.

import { codeOf } from '../common/errors.ts'
import { cellCodes } from '../provider/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { CacheParts } from './cache-parts.ts'
import type { FleetDemand } from './fleet-demand.ts'
import { type Entry, type EntryFacts, factsOf, freshnessOf } from './freshness.ts'
import type { ReadThrough } from './read-through.ts'

export const createInspection = (
  { memory, shared, keyOf, policy, purges, failures, uncached, demand, clock }: CacheParts<Cell, Timeline>,
  cache: ReadThrough<Cell, Timeline>,
  fleetDemand: FleetDemand,
) => ({
  /** The size of the memory tier. */
  cached: () => ({ entries: memory.size, bytes: memory.calculatedSize }),
  /** As `firstExpiry`. A cell that the provider refuses does not count, because it has errors anyway. */
  firstExpiryAt: (whose?: 'any' | 'cached'): Promise<number | undefined> => {
    const isUncached = (id: string) => uncached.has(id) && !cellCodes.has(codeOf(failures.last(id)?.error))
    return firstExpiry({ memory, isUncached, policy }, fleetDemand.each, clock.now(), whose)
  },
  /** The age at which the weather of cells in demand expires. The settings and the timelines differ after a change of the settings. */
  coverage: async () => {
    const now = clock.now()
    const allowedMs = policy.longestUseMs
    let [whole, covered, leastMs] = [0, 0, Number.POSITIVE_INFINITY]
    await fleetDemand.each(id => {
      const entry = memory.peek(id)
      if (!entry) return
      const coveredMs = (entry.coversUntil ?? Number.POSITIVE_INFINITY) - entry.fetchedAt
      // Cells that were in demand before the start have no requests here yet.
      const weight = demand.scoreOf(id, now) || 1
      whole += weight
      if (coveredMs >= allowedMs) covered += weight
      leastMs = Math.min(leastMs, coveredMs, allowedMs)
    })
    return {
      /** The longest time after its load that the settings let an entry be served. */
      allowedMs,
      /** The share of the demand, 0 to 1, whose timelines last so long; null where memory holds none of it. */
      share: whole === 0 ? null : covered / whole,
      /** The shortest time after its load that one of them can be served; null likewise. */
      leastMs: whole === 0 ? null : leastMs,
    }
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
      .most(most, fleetDemand.since(), clock.now())
      .map(({ subject, score }) => ({ cell: subject, requests: score })),
})

/**
 * When the first of the keys can't be served any more if no load succeeds, ms since the epoch: 0 where one has nothing cached, in
 * the past where one has expired, undefined where nothing is known of any.
 * @param isUncached whether no tier is known to hold anything usable of a key
 * @param whose `cached`: a key with nothing cached decides only where nothing else is cached, so that it does not hide the others
 */
export const firstExpiry = async <Value>(
  {
    memory,
    policy,
    isUncached,
  }: Pick<CacheParts<Cell, Value>, 'memory' | 'policy'> & { readonly isUncached: (key: string) => boolean },
  each: (act: (key: string) => void) => Promise<void>,
  now: number,
  whose: 'any' | 'cached' = 'any',
): Promise<number | undefined> => {
  let first = Number.POSITIVE_INFINITY
  let hasUncached = false
  await each(key => {
    const entry = memory.peek(key)
    // An entry that a hard purge covered during its load is not served any more.
    if (entry)
      first = Math.min(first, entry.purged === 'hard' ? entry.fetchedAt : policy.usableUntil(entry, now))
    else hasUncached ||= isUncached(key)
  })
  if (hasUncached && (whose === 'any' || !Number.isFinite(first))) return 0
  return Number.isFinite(first) ? first : undefined
}
