// How long an entry is good: by its age, or until a newer run of the source. Both stretch when the source's budget
// runs short, and neither serves an entry longer than what was fetched reaches. Pure; all instants are ms since the epoch.

import type { EntryMetadata } from './entry.ts'

/** `fresh`: serve it. `stale`: serve it and load it anew. `expired`: load it before anything is served. */
export type Freshness = 'fresh' | 'stale' | 'expired'

export type FreshnessPolicy = {
  /** From when on it may be loaded anew ahead of time; never earlier than the freshness that was asked for. */
  dueAt(entry: EntryMetadata, now: number): number
  /** Until when it is fresh: a little later than it is due. */
  freshUntil(entry: EntryMetadata, now: number): number
  usableUntil(entry: EntryMetadata, now: number): number
  /** The mean time between two loads of an entry in steady demand, as the policy has it without any stretch. */
  periodMs(): number
  /** The most that stretching can do. */
  mostStretch(): number
  /** The longest time after its fetch that any entry is served. */
  readonly longestUseMs: number
}

export type FreshnessOptions = {
  /** The least time an entry is fresh, by age. */
  readonly freshForMs: number
  /** The share of that by which freshness is drawn out, entry by entry, so that what came together goes apart. */
  readonly freshSpread: number
  /** The most that freshness is stretched to, and the longest an entry is fresh without a newer run; at least freshFor. */
  readonly freshForAtMostMs: number
  /** How long before it turns stale an entry that is in demand is loaded anew. */
  readonly refreshAheadForMs: number
  /** How long after it turned stale an entry may still be served. */
  readonly staleForMs: number
}

export type RunOptions = {
  /** How long after a run became available the source may still be mixed. */
  readonly settleForMs: number
  /** Over how long the loads after a run are spread. */
  readonly spreadOverMs: number
}

/** A run of the source: when it became available, and how long runs are apart. */
export type Run = { readonly availableAt: number; readonly intervalMs: number }

export const freshnessOf = (entry: EntryMetadata, policy: FreshnessPolicy, now: number): Freshness => {
  if (now < policy.freshUntil(entry, now)) return 'fresh'
  return now < policy.usableUntil(entry, now) ? 'stale' : 'expired'
}

/** The longest time after its fetch that any entry is served under these options. */
export const longestUseMs = (options: FreshnessOptions): number =>
  mostOf(options) * (1 + options.freshSpread) + leadOf(options) + options.staleForMs

/** @param stretch how many times longer than asked for things are fresh now, at least 1 */
export const freshByAge = (options: FreshnessOptions, stretch: () => number): FreshnessPolicy =>
  policyOf(options, {
    periodMs: () => options.freshForMs * (1 + options.freshSpread / 2),
    mostStretch: () => mostOf(options) / options.freshForMs,
    dueAt: entry =>
      entry.fetchedAt +
      Math.min(options.freshForMs * stretch(), mostOf(options)) * (1 + options.freshSpread * entry.lot),
  })

/** @param recent the runs that were available, newest first; while none is known, freshness goes by age */
export const freshByRun = (
  options: FreshnessOptions & RunOptions,
  recent: () => readonly Run[],
  stretch: () => number,
): FreshnessPolicy => {
  const byAge = freshByAge(options, stretch)
  const newest = (): Run | undefined => recent()[0]
  return policyOf(options, {
    periodMs: () => newest()?.intervalMs ?? byAge.periodMs(),
    mostStretch: () => Math.max(1, mostOf(options) / (newest()?.intervalMs ?? options.freshForMs)),
    dueAt: (entry, now) => {
      const runs = recent()
      const run = runs[0]
      if (!run) return byAge.dueAt(entry, now)
      // Without a newer run it is good until the next one; one that is late is waited for.
      const superseded =
        supersededAt(entry, runs, options.settleForMs) ?? Math.max(run.availableAt + run.intervalMs, now)
      const due = superseded + options.settleForMs + options.spreadOverMs * entry.lot
      const stretched = stretch() > 1 ? entry.fetchedAt + run.intervalMs * stretch() : due
      const last = entry.fetchedAt + mostOf(options) * (1 + options.freshSpread * entry.lot)
      return Math.min(Math.max(due, stretched), last)
    },
  })
}

/**
 * When the first run that an entry can't be made of became available; undefined while there is none. It is the first and
 * not the newest, so that what one run made stale stays stale when the next appears and has yet to settle.
 */
const supersededAt = (
  entry: EntryMetadata,
  runs: readonly Run[],
  settleForMs: number,
): number | undefined => {
  const isBefore = (availableAt: number) => entry.fetchedAt < availableAt + settleForMs
  let first: Run | undefined
  for (const run of runs) {
    if (!isBefore(run.availableAt)) break
    first = run
  }
  const found: number[] = first ? [first.availableAt] : []
  // The run it knew of may be one that this instance never saw.
  if (entry.run !== null && isBefore(entry.run)) found.push(entry.run)
  // Before the first run that is known there was another. Whether the entry has it is told by the run it knew of, since
  // a run may have been late; where none was noted, by the time of its fetch.
  if (first && first === runs.at(-1)) {
    const earlier = first.availableAt - first.intervalMs
    const lacksIt = entry.run === null ? isBefore(earlier) : entry.run < earlier - first.intervalMs / 2
    if (lacksIt) found.push(earlier)
  }
  return found.length > 0 ? Math.min(...found) : undefined
}

const mostOf = ({ freshForMs, freshForAtMostMs }: FreshnessOptions): number =>
  Math.max(freshForMs, freshForAtMostMs)

// Short freshness gets a short lead, so that an entry is not due for most of its life.
const leadOf = ({ refreshAheadForMs, freshForMs }: FreshnessOptions): number =>
  Math.min(refreshAheadForMs, freshForMs / 10)

const policyOf = (
  options: FreshnessOptions,
  { dueAt, periodMs, mostStretch }: Pick<FreshnessPolicy, 'dueAt' | 'periodMs' | 'mostStretch'>,
): FreshnessPolicy => {
  const lead = leadOf(options)
  const longest = longestUseMs(options)
  const freshUntil = (entry: EntryMetadata, now: number) => Math.floor(dueAt(entry, now) + lead)
  return {
    dueAt,
    freshUntil,
    usableUntil: (entry, now) =>
      Math.min(freshUntil(entry, now) + options.staleForMs, entry.fetchedAt + longest),
    periodMs,
    mostStretch,
    longestUseMs: longest,
  }
}
