// The keys that an operator should know first: those with most requests, and those for which most cells were loaded, which may
// ask seldom. Pure.

import type { Loads } from '../keys/loads-by-key.ts'
import type { StatusReport } from './listener/status-report.ts'

type TopKey = NonNullable<StatusReport['top']>['keys'][number]

const mostByRequests = 10
const mostByLoads = 5

/** By requests, then by cells. @param counts the requests of the day, @param loads the cells of the day */
export const topKeys = (
  counts: readonly { readonly keyId: string; readonly used: number }[],
  loads: readonly Loads[],
): TopKey[] => {
  const keyIds = new Set([
    ...largest(counts, mostByRequests, ({ used }) => used).map(({ keyId }) => keyId),
    ...largest(loads, mostByLoads, ({ cells }) => cells).map(({ keyId }) => keyId),
  ])
  const requests = new Map(counts.filter(({ keyId }) => keyIds.has(keyId)).map(one => [one.keyId, one.used]))
  const loaded = new Map(loads.filter(({ keyId }) => keyIds.has(keyId)).map(one => [one.keyId, one]))
  return [...keyIds]
    .map(keyId => {
      const { cells = 0, share = null } = loaded.get(keyId) ?? {}
      return { keyId, requests: requests.get(keyId) ?? 0, cellsLoaded: cells, shareOfDay: share }
    })
    .sort((one, other) => other.requests - one.requests || other.cellsLoaded - one.cellsLoaded)
}

/** Of some counts and those kept of others before: all that `topKeys` may need. */
export const topCandidates = <Count extends { readonly keyId: string; readonly used: number }>(
  kept: readonly Count[],
  counts: readonly Count[],
  loads: readonly Loads[],
): Count[] => {
  const all = [...kept, ...counts]
  const loaded = new Set(largest(loads, mostByLoads, ({ cells }) => cells).map(({ keyId }) => keyId))
  return [
    ...new Set([
      ...largest(all, mostByRequests, ({ used }) => used),
      ...all.filter(({ keyId }) => loaded.has(keyId)),
    ]),
  ]
}

// In one pass: there may be tens of thousands of keys, and this runs every second.
const largest = <Item>(items: readonly Item[], most: number, sizeOf: (item: Item) => number): Item[] => {
  let top: Item[] = []
  for (const item of items) {
    const last = top.at(-1)
    if (top.length < most || (last !== undefined && sizeOf(item) > sizeOf(last)))
      top = [...top, item].sort((one, other) => sizeOf(other) - sizeOf(one)).slice(0, most)
  }
  return top
}
