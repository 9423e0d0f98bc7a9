// The day's usage of keys, merged from the store and this gateway. With very many keys the store is not read, because each key
// takes a read.

import type { Calendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { createAdministration } from '../keys/administration.ts'
import type { Tiers } from '../keys/authentication.ts'
import type { Loads } from '../keys/loads-by-key.ts'
import type { KnownUsage } from '../keys/meter.ts'
import type { Metering } from '../keys/metering.ts'
import type { Store } from '../stores/store.ts'
import type { StatusReport } from './reports/status-report.ts'

type StoredUsage = KnownUsage & { readonly subscriber: string | null; readonly tier: string }

export type DayUsage = {
  /** The fullest keys that are near their limit; null where none is known, and not every key was read. */
  readonly near: readonly KnownUsage[] | null
  readonly top: readonly KnownUsage[]
}

const maxKeysRead = 1_000
const keepForMs = 60_000
const keepFailureForMs = 5_000
const nearLimit = 0.8
/** Keys near their limit in a report. */
export const maxKeysNear = 20

/** Of all keys; null where there are too many to read each. @throws StoreError */
export const readUsage = async (
  store: Store,
  tiers: Tiers,
  calendar: Calendar,
  storeNow: number,
): Promise<StoredUsage[] | null> => {
  if ((await store.countKeys()) > maxKeysRead) return null
  const clock = { now: () => storeNow }
  const { keys } = await createAdministration({ store, tiers, calendar, clock }).partOfUsage(
    0,
    maxKeysRead,
    1,
  )
  return keys.map(({ id, subscriber, tier, used, limit }) => ({
    keyId: id,
    subscriber,
    tier,
    used,
    limit: limit ?? 0,
  }))
}

/** The counts near their limit, fullest first. */
export const fullestFirst = <Count extends { readonly used: number; readonly limit: number }>(
  counts: readonly Count[],
): Count[] =>
  counts
    .filter(({ used, limit }) => limit > 0 && used >= limit * nearLimit)
    .sort((one, other) => other.used / other.limit - one.used / one.limit)
    .slice(0, maxKeysNear)

type Parts = {
  readonly meter: Pick<Metering['meter'], 'usageAt'>
  readonly storeClock: Pick<Clock, 'now'>
  readonly loads: { all(): readonly Loads[] }
  /** Reads the store, as `readUsage` does. */
  readonly read: (storeNow: number) => Promise<readonly KnownUsage[] | null>
  readonly calendar: Calendar
}

/** The store is read again after a minute, and on the next local day. */
export const createDayUsage = ({
  meter,
  storeClock,
  loads,
  read,
  calendar,
}: Parts): (() => Promise<DayUsage>) => {
  let kept = { day: '', until: 0, usage: null as readonly KnownUsage[] | null }
  const stored = async (storeNow: number, day: string): Promise<readonly KnownUsage[] | null> => {
    if (kept.day === day && performance.now() < kept.until) return kept.usage
    const [usage, keepMs] = await read(storeNow).then(
      found => [found?.filter(({ used }) => used > 0) ?? null, keepForMs] as const,
      () => [null, keepFailureForMs] as const,
    )
    kept = { day, until: performance.now() + keepMs, usage }
    return usage
  }
  let last: (DayUsage & { readonly day: string; readonly until: number }) | undefined
  return async () => {
    const startedAt = performance.now()
    const storeNow = storeClock.now()
    const day = calendar.dayOf(storeNow)
    if (last?.day === day && startedAt < last.until) return last
    let near: readonly KnownUsage[] = []
    let top: readonly KnownUsage[] = []
    let steps = 0
    const loaded = loads.all()
    const add = (part: readonly KnownUsage[]): void => {
      near = fullestFirst([...near, ...part])
      top = topCandidates(top, part, loaded)
    }
    const inStore = await stored(storeNow, day)
    const unseen = new Map(inStore?.map(each => [each.keyId, each]))
    for await (const part of meter.usageAt(storeNow)) {
      add(
        part.map(each => {
          const other = unseen.get(each.keyId)
          unseen.delete(each.keyId)
          return other && other.used > each.used ? other : each
        }),
      )
      steps += 1
    }
    add([...unseen.values()])
    const now = performance.now()
    last = {
      near: near.length > 0 || inStore ? near : null,
      top,
      day,
      // With very many keys, collecting takes at most a twentieth of the time.
      until: steps > 1 ? now + 20 * (now - startedAt) : 0,
    }
    return last
  }
}

type TopKey = NonNullable<StatusReport['top']>['keys'][number]

const mostByRequests = 10
/** Candidates of the dashboard's panel of keys. */
const mostCandidates = 50
const mostByLoads = 5

/**
 * The keys with most requests, and the keys with most loaded cells, which may send few requests. By requests, then by cells.
 * @param counts the requests of the day, @param loads the cells of the day
 */
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

/** All that `topKeys` and the panel of keys may need, from these counts and the candidates so far. */
const topCandidates = <Count extends { readonly keyId: string; readonly used: number }>(
  kept: readonly Count[],
  counts: readonly Count[],
  loads: readonly Loads[],
): Count[] => {
  const all = [...kept, ...counts]
  const loaded = new Set(largest(loads, mostByLoads, ({ cells }) => cells).map(({ keyId }) => keyId))
  return [
    ...new Set([
      ...largest(all, mostCandidates, ({ used }) => used),
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
