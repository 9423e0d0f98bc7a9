// The read-through cache: reads memory, then the shared tier, then loads. Serves a stale entry immediately and refreshes it in the
// background (stale-while-revalidate).

import { after, type Clock } from '../common/clock.ts'
import { AbohawaError, codeOf } from '../common/errors.ts'
import { cellCodes } from '../provider/errors.ts'
import type { Urgency } from '../provider/queue.ts'
import type { CacheParts, CacheResult, Outcome, Source, Subject } from './cache-parts.ts'
import { BackoffError } from './failures.ts'
import { type EntryMetadata, type Freshness, freshnessOf } from './freshness.ts'
import { type Loaded, type LoadRequest, Loads } from './loads.ts'
import { covers, type Purge } from './purges.ts'
import type { MemoryEntry } from './tiers.ts'
import { eachInTurns } from './turns.ts'

// Within a second the order of reads does not matter, and moving an entry costs more than finding it.
const moveEveryMs = 1_000

/** Methods that are passed on as functions are arrow functions, so that they keep `this`. */
export class ReadThrough<Of extends Subject, Value> {
  readonly #parts: CacheParts<Of, Value>
  readonly #loads: Loads<Of, Value>

  constructor(parts: CacheParts<Of, Value>) {
    this.#parts = parts
    this.#loads = new Loads(parts)
  }

  /**
   * Returns a fresh entry in memory directly, and a stale one that is being refreshed; else a promise. The promise rejects with
   * `waited_too_long` or the loader's error when no tier holds a usable entry.
   * @param consumer whose share of the source a load takes; undefined for none in particular
   * @param now the clock's instant, where it was read in this turn
   */
  readonly read = (
    subject: Of,
    consumer?: string | undefined,
    now = this.#parts.clock.now(),
  ): CacheResult<Of, Value> | Promise<CacheResult<Of, Value>> => {
    const { memory, policy, demand } = this.#parts
    demand.record(subject.id, subject, now, consumer)
    const entry = memory.peek(subject.id)
    if (!entry) return this.#readLater(subject, consumer)
    if (Math.abs(now - entry.movedAt) >= moveEveryMs) {
      entry.movedAt = now
      memory.get(subject.id)
    }
    const state = freshnessOf(entry, policy, now, entry.purged)
    if (state === 'fresh')
      return this.#resultOf(subject, { entry, source: 'memory', joined: false }, state, now, consumer)
    return state === 'stale'
      ? this.#readStale(subject, entry, now, consumer)
      : this.#readLater(subject, consumer)
  }

  /**
   * What memory holds, fresh or stale, without a trace: nothing is loaded or counted. Undefined where a read would wait. A stale entry is
   * described as by a read that refreshes it.
   */
  readonly peek = (subject: Of): CacheResult<Of, Value> | undefined => {
    const now = this.#parts.clock.now()
    const entry = this.#parts.memory.peek(subject.id)
    if (!entry) return undefined
    const state = freshnessOf(entry, this.#parts.policy, now, entry.purged)
    if (state === 'expired') return undefined
    const isStale = state === 'stale'
    return this.#describe(subject, entry, now, isStale ? 'stale' : 'hit', 'memory', isStale, false)
  }

  /**
   * Refreshes an entry unless another instance already has. Whether that is over: it came about, or the provider refused this subject
   * alone, as it will do again. Never rejects, a failure goes to the observer.
   */
  readonly refresh = async (
    subject: Of,
    purpose: Urgency,
    consumer?: string | undefined,
  ): Promise<boolean> => {
    const isLoaded = await this.#loads.inBackground(subject, this.#refreshOf(subject, purpose, consumer))
    return isLoaded || cellCodes.has(codeOf(this.#parts.failures.last(subject.id)?.error))
  }

  /** Loads an entry whatever is cached. Never rejects; a failure goes to the observer. */
  readonly reload = async (subject: Of): Promise<void> => {
    await this.#loads.inBackground(subject, {
      purpose: 'refresh_ahead',
      consumer: undefined,
      isAcceptable: undefined,
    })
  }

  /** Whether a tier holds a fresh entry, which is then in memory too. */
  readonly isFresh = async (subject: Of): Promise<boolean> => {
    const { id } = subject
    const { memory, policy, shared, keyOf, clock } = this.#parts
    const cached = memory.peek(id)
    if (cached && freshnessOf(cached, policy, clock.now(), cached.purged) === 'fresh') return true
    const found = await shared.get(keyOf(subject), entry => this.#loads.isFreshOutside(id, entry))
    if (!found) return false
    this.#loads.keepRead(id, found)
    return true
  }

  /**
   * Loads an entry unless a fresh one is cached, with the urgency of a refresh-ahead. Returns whether it loaded.
   * @throws BackoffError when the load failed, or while the backoff of an earlier failure lasts
   */
  readonly ensure = async (subject: Of): Promise<boolean> => {
    const { id } = subject
    if (await this.isFresh(subject)) return false
    const failure = this.#parts.failures.backoff(id)
    if (failure) throw new BackoffError(failure)
    const isAcceptable = (found: EntryMetadata): boolean => this.#loads.isFreshOutside(id, found)
    await this.#loads.obtain(subject, { purpose: 'refresh_ahead', consumer: undefined, isAcceptable })
    return true
  }

  /**
   * Copies the entry of the shared tier into memory; true when it is usable. Never loads.
   * @param mayEvict false where no other entry may leave memory for it
   */
  readonly warm = async (subject: Of, mayEvict = true): Promise<boolean> => {
    const { id } = subject
    const { memory, shared, uncached, keyOf } = this.#parts
    const entry = await shared.get(keyOf(subject), found => this.#loads.stateOutside(id, found) !== 'expired')
    if (!entry) {
      if (!memory.has(id)) uncached.add(id)
      return false
    }
    if (!mayEvict && memory.calculatedSize + entry.bytes > memory.maxSize) return false
    this.#loads.keepRead(id, entry)
    return true
  }

  isLoading({ id }: Of): boolean {
    return this.#loads.of(id) !== undefined
  }

  /**
   * Applies purges that are in force from now on to memory, and ends the backoff of the keys that they cover. Later reads join
   * no load from before them. Until it resolves, reads of keys that were not reached yet may find them as they were; what is
   * loaded meanwhile knows the purges itself.
   * @param isWhole false where other purges may be unknown, so that any entry may be covered
   */
  readonly purged = async (added: readonly Purge[], isWhole: boolean): Promise<void> => {
    if (isWhole && added.length === 0) return
    const { memory, purges, failures, uncached, demand } = this.#parts
    const isPurged = (id: string): boolean => added.some(({ scope }) => covers(scope, id))
    const work = added.length
    const endBackoff = (id: string): void => {
      if (isPurged(id)) failures.clear(id)
    }
    await eachInTurns(failures.keys(), endBackoff, work)
    const mark = (id: string): void => {
      const entry = memory.peek(id)
      if (!entry || (isWhole && !isPurged(id))) return
      const purged = purges.of(id, entry)
      if (purged === 'hard') {
        memory.delete(id)
        uncached.add(id)
      } else if (entry.purged !== 'hard') entry.purged = purged
    }
    await eachInTurns([...memory.keys()], mark, work)
    // A hard purge also removes entries from the shared tier that memory has evicted.
    const hard = added.filter(({ kind }) => kind === 'hard')
    if (hard.length === 0) return
    const forget = ({ key }: { readonly key: string }): void => {
      if (!memory.has(key) && hard.some(({ scope }) => covers(scope, key))) uncached.add(key)
    }
    await eachInTurns(demand.since(0), forget, hard.length)
  }

  #refreshOf({ id }: Of, purpose: Urgency, consumer: string | undefined): LoadRequest {
    const { policy, clock } = this.#parts
    return {
      purpose,
      consumer,
      isAcceptable: found =>
        this.#loads.isFreshOutside(id, found) && clock.now() < policy.dueAt(found, clock.now()),
    }
  }

  /** Looks once whether another instance has loaded since; while a load runs, the stale entry is served immediately. */
  #readStale(
    subject: Of,
    entry: MemoryEntry<Value>,
    now: number,
    consumer: string | undefined,
  ): CacheResult<Of, Value> | Promise<CacheResult<Of, Value>> {
    const { memory, policy, shared, failures, throttled, clock } = this.#parts
    const { id } = subject
    const stale = { entry, source: 'memory', joined: false }
    const request = this.#refreshOf(subject, 'refresh', consumer)
    const inFlight = this.#loads.joinable(id, request)
    if ((inFlight && !inFlight.sharedTierRead) || failures.backoff(id) || throttled(consumer, 'refresh'))
      return this.#resultOf(subject, stale, 'stale', now, consumer)
    if (!inFlight) void this.#loads.inBackground(subject, request)
    const read = this.#loads.of(id)?.sharedTierRead ?? Promise.resolve()
    return read.then(() => {
      const newer = memory.get(id) ?? entry
      const found = newer === entry ? stale : { entry: newer, source: shared.name, joined: false }
      const state = freshnessOf(newer, policy, clock.now(), newer.purged)
      return state === 'expired'
        ? this.#readLater(subject, consumer)
        : this.#resultOf(subject, found, state, clock.now(), consumer, !inFlight)
    })
  }

  async #readLater(subject: Of, consumer: string | undefined): Promise<CacheResult<Of, Value>> {
    const { policy, waitForMs, clock, observer } = this.#parts
    const isAcceptable = (found: EntryMetadata): boolean =>
      this.#loads.stateOutside(subject.id, found) !== 'expired'
    try {
      const obtained = this.#loads.obtain(subject, { purpose: 'cold', consumer, isAcceptable })
      const found = await within(clock, waitForMs, obtained)
      const now = clock.now()
      const state = freshnessOf(found.entry, policy, now, found.entry.purged)
      return this.#resultOf(subject, found, state, now, consumer)
    } catch (error) {
      observer.onShortfall('failed', error)
      throw error
    }
  }

  #resultOf(
    subject: Of,
    found: Loaded<Value>,
    state: Freshness,
    now: number,
    consumer: string | undefined,
    hasBegun = false,
  ): CacheResult<Of, Value> {
    const { entry } = found
    const { failures, throttled, observer } = this.#parts
    // What was purged while it was loaded is no more than a stale entry of memory.
    const source = found.source === 'provider' && entry.purged !== undefined ? 'memory' : found.source
    const outcome = source === 'provider' ? 'miss' : state === 'fresh' ? 'hit' : 'stale'
    let forwarded = outcome === 'miss'
    let collapsed = outcome === 'miss' && found.joined
    if (outcome === 'stale') {
      const failure = failures.backoff(subject.id)
      if (failure) observer.onShortfall('stale', failure.error)
      else if (throttled(consumer, 'refresh')) observer.onShareUsedUp('refresh')
      else {
        const request = this.#refreshOf(subject, 'refresh', consumer)
        forwarded = true
        collapsed = !hasBegun && this.#loads.joinable(subject.id, request) !== undefined
        void this.#loads.inBackground(subject, request)
      }
    }
    observer.onRead(outcome, source, now - entry.fetchedAt)
    if (collapsed) observer.onCollapsed()
    return this.#describe(subject, entry, now, outcome, source, forwarded, collapsed)
  }

  #describe(
    subject: Of,
    entry: MemoryEntry<Value>,
    now: number,
    outcome: Outcome,
    source: Source,
    forwarded: boolean,
    collapsed: boolean,
  ): CacheResult<Of, Value> {
    const freshUntil = this.#parts.policy.freshUntil(entry, now)
    return {
      subject,
      value: entry.value,
      readAt: now,
      fetchedAt: entry.fetchedAt,
      // A purged entry is stale whatever its age.
      freshUntil: outcome === 'stale' ? Math.min(freshUntil, now) : freshUntil,
      outcome,
      source,
      forwarded,
      collapsed,
      upstream: entry.upstream,
      derived: entry.derived,
    }
  }
}

// Rejects after the given time with `waited_too_long`; a later result or failure is dropped.
const within = <Result>(clock: Clock, ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const late = () => reject(new AbohawaError('waited_too_long', `nothing was loaded within ${ms} ms`))
  const endTimer = after(clock, ms, late)
  result.then(resolve, reject).finally(endTimer)
  return promise
}
