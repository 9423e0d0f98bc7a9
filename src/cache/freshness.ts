// A cache entry, and its freshness: until a newer model run, or by age where no run is known. The stretch lengthens it when the
// provider's budget runs short; no entry is served beyond its end. All instants are ms since the epoch.

import { crc32 } from 'node:zlib'
import { type Clock, clockToleranceMs } from '../common/clock.ts'
import { type FreshnessOptions, longestUseMs, maxFreshMs, refreshLeadMs } from '../weather/horizon.ts'

/** The metadata of an entry: all that its freshness depends on. */
export type EntryMetadata = {
  /** Ms since the epoch. */
  readonly fetchedAt: number
  /** From 0 to 1: the entry's part of the spread of freshness. */
  readonly jitter: number
  /** The number of the newest purge when its load began. */
  readonly generation: number
  /** When the newest run at its load became available, ms since the epoch; null when runs are not followed. */
  readonly run: number | null
  /** When the value ends, ms since the epoch: it is not served from then on. Undefined for a value without an end. */
  readonly coversUntil?: number | undefined
  /** The name of the upstream that gave it; undefined where there is one. */
  readonly upstream?: string | undefined
}

export type Entry<Value> = EntryMetadata & {
  readonly value: Value
  /** The size of the value in memory. */
  readonly bytes: number
}

/** The jitter of an entry: the same in every instance, and different for each key and fetch. */
export const jitterOf = (key: string, fetchedAt: number): number => crc32(`${key}@${fetchedAt}`) / 2 ** 32

/** What a purge does to the entries that it covers. `soft`: they turn stale. `hard`: they are removed. */
export type PurgeKind = 'soft' | 'hard'

/** `fresh`: serve it. `stale`: serve it and refresh it in the background. `expired`: load before serving. */
export type Freshness = 'fresh' | 'stale' | 'expired'

export type FreshnessPolicy = ReturnType<typeof createFreshness>

export type RunOptions = {
  /** How long after a run became available the source may still serve the previous one. */
  readonly settleForMs: number
  /** The time over which jitter spreads the loads after a run. */
  readonly spreadOverMs: number
}

/** A run of the source: when it became available, and how long runs are apart. */
export type Run = { readonly availableAt: number; readonly intervalMs: number }

const noRuns: readonly Run[] = []

/** Whether an entry was fetched later than the clock says. */
export const isFromFuture = ({ fetchedAt }: EntryMetadata, now: number): boolean =>
  fetchedAt > now + clockToleranceMs

/** @param purged the strongest purge that covers the entry */
export const freshnessOf = (
  entry: EntryMetadata,
  policy: FreshnessPolicy,
  now: number,
  purged?: PurgeKind,
): Freshness => {
  if (purged === undefined && now < policy.freshUntil(entry, now)) return 'fresh'
  return purged !== 'hard' && now < policy.usableUntil(entry, now) ? 'stale' : 'expired'
}

/** An entry of one tier, for operators. */
export type EntryFacts = {
  readonly fetchedAt: number
  readonly run: number | null
  readonly dueAt: number
  readonly freshUntil: number
  readonly usableUntil: number
  readonly state: Freshness
  readonly purged: PurgeKind | null
  readonly bytes: number
  readonly upstream: string | null
}

export const factsOf = (
  entry: Entry<unknown> | undefined,
  policy: FreshnessPolicy,
  now: number,
  purged: PurgeKind | undefined,
): EntryFacts | null =>
  entry
    ? {
        fetchedAt: entry.fetchedAt,
        run: entry.run,
        dueAt: Math.floor(policy.dueAt(entry, now)),
        freshUntil: policy.freshUntil(entry, now),
        usableUntil: Math.floor(policy.usableUntil(entry, now)),
        state: freshnessOf(entry, policy, now, purged),
        purged: purged ?? null,
        bytes: entry.bytes,
        upstream: entry.upstream ?? null,
      }
    : null

/**
 * @param stretch the factor on freshness at an instant, at least 1
 * @param recent the available runs of an upstream, newest first; without a name, of the upstream in use. Without runs, freshness goes by
 * age
 */
export const createFreshness = (
  given: FreshnessOptions & RunOptions,
  stretch: (now: number) => number,
  recent: (upstream?: string) => readonly Run[] = () => noRuns,
) => {
  const options = { ...given }
  let maxFresh = maxFreshMs(options)
  let lead = refreshLeadMs(options)
  let longest = longestUseMs(options)
  const endOf = (entry: EntryMetadata): number => entry.coversUntil ?? Number.POSITIVE_INFINITY
  const dueByPolicy = (entry: EntryMetadata, now: number): number => {
    const { fetchedAt, jitter, upstream } = entry
    const runs = recent(upstream)
    const run = runs[0]
    const spread = 1 + options.freshSpread * jitter
    // Without a newer run the entry is fresh until the next one, however late that is.
    const due = run
      ? (supersededAt(entry, runs, options.settleForMs) ?? Math.max(run.availableAt + run.intervalMs, now)) +
        options.settleForMs +
        options.spreadOverMs * jitter
      : fetchedAt + options.freshForMs * spread
    const factor = stretch(now)
    // The stretch is a factor on the usual period of who loads next, whoever gave the entry.
    const stretched = factor > 1 ? (recent()[0]?.intervalMs ?? options.freshForMs) * factor * spread : 0
    return Math.min(Math.max(due, fetchedAt + stretched), fetchedAt + maxFresh * spread)
  }
  // An entry from the future was loaded before the clock was set back: nobody knows its age.
  const dueAt = (entry: EntryMetadata, now: number) =>
    isFromFuture(entry, now) ? now - lead : Math.min(dueByPolicy(entry, now), endOf(entry) - lead)
  const freshUntil = (entry: EntryMetadata, now: number) => Math.floor(dueAt(entry, now) + lead)
  return {
    /** The start of refresh-ahead; earlier than the configured freshness only where the entry ends. */
    dueAt,
    /** The end of freshness, a little after `dueAt`. */
    freshUntil,
    usableUntil: (entry: EntryMetadata, now: number): number =>
      Math.min(freshUntil(entry, now) + options.staleForMs, entry.fetchedAt + longest, endOf(entry)),
    /** The mean time between two loads of an entry in steady demand, without stretch. */
    periodMs: (): number => {
      const factor = 1 + options.freshSpread / 2
      return Math.min(recent()[0]?.intervalMs ?? options.freshForMs * factor, maxFresh * factor)
    },
    /** The largest stretch that has an effect. */
    maxStretch: (): number => Math.max(1, maxFresh / (recent()[0]?.intervalMs ?? options.freshForMs)),
    /** The longest time after its fetch that any entry is served. */
    get longestUseMs() {
      return longest
    },
    /** The time between `dueAt` and `freshUntil`. */
    get leadMs() {
      return lead
    },
    /** Sets new options, for cached entries too. */
    apply: (next: FreshnessOptions & RunOptions): void => {
      Object.assign(options, next)
      maxFresh = maxFreshMs(options)
      lead = refreshLeadMs(options)
      longest = longestUseMs(options)
    },
  }
}

/**
 * When the first run after the entry's own became available; undefined while there is none. It is the first and not the newest,
 * so that an entry that one run made stale stays stale when the next run appears and has yet to settle.
 */
const supersededAt = (
  entry: EntryMetadata,
  runs: readonly Run[],
  settleForMs: number,
): number | undefined => {
  const { fetchedAt, run } = entry
  let first: Run | undefined
  for (const each of runs) {
    if (fetchedAt >= each.availableAt + settleForMs) break
    first = each
  }
  // Runs for each entry in each pass of refresh-ahead, so it allocates nothing.
  let found = first ? first.availableAt : Number.POSITIVE_INFINITY
  // The entry's run may be one that this instance never saw.
  if (run !== null && fetchedAt < run + settleForMs) found = Math.min(found, run)
  // There was a run before the first known one. The entry's own run decides whether the entry has it, since a run may be late;
  // without a run, the time of its fetch decides.
  if (first && first === runs.at(-1)) {
    const earlier = first.availableAt - first.intervalMs
    const lacksIt = run === null ? fetchedAt < earlier + settleForMs : run < earlier - first.intervalMs / 2
    if (lacksIt) found = Math.min(found, earlier)
  }
  return found === Number.POSITIVE_INFINITY ? undefined : found
}

const stretchEveryMs = 1_000

/** The factor on freshness, computed at most once a second, because every read uses it. */
export const createStretch = (compute: () => number, clock: Clock) => {
  let stretch = 1
  let computedAt = Number.NEGATIVE_INFINITY
  return {
    /** At least 1. @param now the clock's instant: reading it costs as much as the rest */
    current: (now = clock.now()): number => {
      if (Math.abs(now - computedAt) >= stretchEveryMs) {
        computedAt = now
        stretch = compute()
      }
      return stretch
    },
    /** Makes the next use compute it again. */
    renew: (): void => {
      computedAt = Number.NEGATIVE_INFINITY
    },
  }
}
