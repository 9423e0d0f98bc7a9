// Chooses what is loaded although no read waits for it. Refresh-ahead loads entries before they turn stale: entries in demand since their
// last load, highest demand first, in full batches where time allows, and pinned ones. A probe loads one cell while the provider's circuit
// is open, so that recovery does not depend on requests.

import type { Clock } from '../common/clock.ts'
import type { Subject } from './cache-parts.ts'
import type { Demand, Demanded } from './demand.ts'
import type { EntryMetadata, FreshnessPolicy, PurgeKind } from './freshness.ts'
import { covers, type Purge } from './purges.ts'

export type RefreshAheadParts<Of extends Subject> = {
  readonly demand: Demand<Of>
  /** Subjects to keep warm without demand, most important first. */
  readonly pinned: () => readonly Of[]
  readonly memory: {
    peek(key: string): (EntryMetadata & { readonly purged?: PurgeKind | undefined }) | undefined
  }
  readonly policy: FreshnessPolicy
  /** Whether a key must not be loaded now for the consumer that requested it last. */
  readonly isThrottled: (key: string, consumer: string | undefined) => boolean
  /** Whether it need not be tried again soon; never rejects. */
  readonly refresh: (subject: Of, consumer: string | undefined) => Promise<boolean>
  /** How many entries make a full batch now. */
  readonly batch: () => number
  /** How long after its last request a key counts as in demand. */
  readonly demandForMs: number
  readonly clock: Clock
}

type Due<Of> = Pick<Demanded<Of>, 'key' | 'subject' | 'score' | 'consumer'>

// Few loads queue at a time, so that a change in demand still changes the order.
const batchesUnderWay = 3

export const createRefreshAhead = <Of extends Subject>(parts: RefreshAheadParts<Of>) => {
  const { demand, pinned, memory, policy, isThrottled, refresh, demandForMs, clock } = parts
  const underWay = new Set<string>()
  // Pinned subjects that do not fit into memory are loaded once per period, not in every round.
  const lastLoaded = new Map<string, number>()
  /** Whether memory has one that may be served: a hard purge may cover what was loaded meanwhile. */
  const isHeld = (key: string): boolean => {
    const entry = memory.peek(key)
    return entry !== undefined && entry.purged !== 'hard'
  }
  /** When an entry is due; Infinity for one that nobody requested since its load, and for none. */
  const dueAtOf = (key: string, requestedAt: number, now: number): number => {
    const entry = memory.peek(key)
    return entry && requestedAt > entry.fetchedAt ? policy.dueAt(entry, now) : Number.POSITIVE_INFINITY
  }

  /** Starts the loads that are due; called at short intervals. Returns how many it started. */
  const start = (): number => {
    const now = clock.now()
    const batch = parts.batch()
    const due = new Map<string, Due<Of>>()
    let urgent = false
    // Runs for each cell in demand, so it allocates nothing.
    const consider = (candidate: Due<Of>, requestedAt: number): void => {
      const { key, consumer } = candidate
      const dueAt = dueAtOf(key, requestedAt, now)
      // Few cells get further.
      if (now < dueAt || underWay.has(key) || isThrottled(key, consumer)) return
      due.set(key, candidate)
      const entry = memory.peek(key)
      if (entry) urgent ||= now >= (dueAt + policy.freshUntil(entry, now)) / 2
    }

    for (const demanded of demand.since(now - demandForMs)) consider(demanded, demanded.lastRequestedAt)
    pinned().forEach((subject, rank) => {
      const key = subject.id
      // Below everything in demand, in the order given.
      const score = -rank
      if (isHeld(key)) {
        if (!due.has(key)) consider({ key, subject, score, consumer: undefined }, Number.POSITIVE_INFINITY)
      } else if (
        !underWay.has(key) &&
        !isThrottled(key, undefined) &&
        Math.abs(now - (lastLoaded.get(key) ?? 0)) >= policy.periodMs()
      ) {
        due.set(key, { key, subject, score, consumer: undefined })
        urgent = true
      }
    })

    if (due.size < batch && !urgent) return 0
    const room = Math.max(0, batch * batchesUnderWay - underWay.size)
    const chosen = [...due.values()].sort((a, b) => b.score - a.score).slice(0, room)
    for (const { key, subject, consumer } of chosen) {
      underWay.add(key)
      if (!isHeld(key)) lastLoaded.set(key, now)
      void refresh(subject, consumer).then(isOver => {
        underWay.delete(key)
        if (!isOver) lastLoaded.delete(key)
      })
    }
    return chosen.length
  }

  /** When the first entry is due, as things are; in the past where one waits for a full batch. Infinity where none is to come. */
  const nextAt = (): number => {
    const now = clock.now()
    let first = Number.POSITIVE_INFINITY
    for (const { key, lastRequestedAt } of demand.since(now - demandForMs))
      first = Math.min(first, dueAtOf(key, lastRequestedAt, now))
    for (const { id } of pinned())
      first = Math.min(first, isHeld(id) ? dueAtOf(id, Number.POSITIVE_INFINITY, now) : now)
    return first
  }

  /** What hard purges removed is loaded again at once where it is pinned. */
  const purged = (added: readonly Purge[]): void => {
    const hard = added.filter(({ kind }) => kind === 'hard')
    for (const key of lastLoaded.keys())
      if (hard.some(({ scope }) => covers(scope, key))) lastLoaded.delete(key)
  }

  return { start, nextAt, purged }
}

// The budget may refuse a probe, which leaves the circuit as it is: wait before the next one.
const againAfterMs = 1_000

/** Sends a probe if one is due; called at short intervals. The breaker evaluates its outcome. */
export const createProbe = <Of extends Subject>({
  isDue,
  cells,
  load,
}: {
  /** Whether the breaker would let a probe through and none has been sent. */
  readonly isDue: () => boolean
  /** What it may load, the most useful first. */
  readonly cells: () => readonly Of[]
  /** Never rejects. */
  readonly load: (cells: readonly [Of, ...Of[]]) => Promise<void>
}): (() => void) => {
  let isOut = false
  let endedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (isOut || !isDue() || performance.now() - endedAt < againAfterMs) return
    const [first, ...others] = cells()
    if (!first) return
    isOut = true
    void load([first, ...others]).finally(() => {
      isOut = false
      endedAt = performance.now()
    })
  }
}
