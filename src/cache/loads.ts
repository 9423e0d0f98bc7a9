// The loads of a cache: single-flight in this process. A load reads the shared tier, then asks the source, and fills both tiers. Requests
// for the same key join the load in flight.

import { codeOf } from '../common/errors.ts'
import type { CacheParts, Source, Subject } from './cache-parts.ts'
import { BackoffError, type Failure } from './failures.ts'
import { type Entry, type EntryMetadata, type Freshness, freshnessOf, isFromFuture } from './freshness.ts'
import { keepEntry, type MemoryEntry } from './tiers.ts'

type Purpose = Parameters<CacheParts<Subject, unknown>['load']>[1]

export type LoadRequest = {
  readonly purpose: Purpose
  readonly consumer: string | undefined
  /** Whether an entry of the shared tier makes the load unnecessary; undefined to load whatever is cached. */
  readonly isAcceptable: ((found: EntryMetadata) => boolean) | undefined
}

export type Loaded<Value> = { entry: MemoryEntry<Value>; source: Source; joined: boolean }

/** All that runs for a key: the read of the shared tier, then the load. */
export type InFlight<Value> = {
  readonly purpose: Purpose
  /** For whom it was begun. */
  readonly consumer: string | undefined
  /** The number of the newest purge at its start. */
  readonly generation: number
  /** Resolves when the shared tier was read; undefined from then on. */
  sharedTierRead: Promise<void> | undefined
  /** Whether the source is asked, from when on the load can be expedited. */
  isLoading: boolean
  /** The last read that waits for what others began. */
  waiting: { readonly consumer: string | undefined } | undefined
  readonly result: Promise<Loaded<Value>>
}

// They say something of this process: another may well reach the provider.
const ownCodes: ReadonlySet<string> = new Set(['provider_not_sent', 'provider_circuit_open'])

export class Loads<Of extends Subject, Value> {
  readonly #parts: CacheParts<Of, Value>
  readonly #inFlight = new Map<string, InFlight<Value>>()

  constructor(parts: CacheParts<Of, Value>) {
    this.#parts = parts
  }

  of(id: string): InFlight<Value> | undefined {
    return this.#inFlight.get(id)
  }

  /** The state of an entry that memory does not hold. */
  stateOutside(id: string, entry: EntryMetadata): Freshness {
    const { policy, purges, clock } = this.#parts
    return freshnessOf(entry, policy, clock.now(), purges.of(id, entry))
  }

  #keep(id: string, entry: Entry<Value>): MemoryEntry<Value> {
    const { memory, purges, uncached } = this.#parts
    uncached.delete(id)
    return keepEntry(memory, id, entry, purges.of(id, entry))
  }

  /** Whether an entry of the shared tier is fresh, and memory holds no newer one: the newer one may be stale, but is never replaced. */
  isFreshOutside(id: string, entry: EntryMetadata): boolean {
    return this.stateOutside(id, entry) === 'fresh' && this.#newerThan(id, entry) === undefined
  }

  /** The usable entry of memory that is newer than this one. */
  #newerThan(id: string, entry: EntryMetadata): MemoryEntry<Value> | undefined {
    const { memory, policy, purges, clock } = this.#parts
    const { fetchedAt } = entry
    const cached = memory.peek(id)
    const now = clock.now()
    if (!cached || cached.fetchedAt <= fetchedAt || isFromFuture(cached, now)) return undefined
    // Clocks differ: an entry that was loaded after the purge is newer, whatever its instant.
    if (cached.purged && purges.of(id, entry) === undefined) return undefined
    return freshnessOf(cached, policy, now, cached.purged) === 'expired' ? undefined : cached
  }

  /** Keeps what was read from the shared tier, unless a load that ended meanwhile has brought a newer entry. */
  keepRead(id: string, read: Entry<Value>): Pick<Loaded<Value>, 'entry' | 'source'> {
    const newer = this.#newerThan(id, read)
    return newer
      ? { entry: newer, source: 'memory' }
      : { entry: this.#keep(id, read), source: this.#parts.shared.name }
  }

  /** The load that this request would join. A load from before a purge may bring weather from before it: nobody joins it any more. */
  joinable(id: string, { isAcceptable }: LoadRequest): InFlight<Value> | undefined {
    const load = this.#inFlight.get(id)
    if (!load || this.#parts.purges.of(id, load) !== undefined) return undefined
    return isAcceptable || load.isLoading ? load : undefined
  }

  /** What the load of a key brings: the one in flight, or one that begins. @throws BackoffError, or the error of a throttled consumer */
  async obtain(subject: Of, request: LoadRequest): Promise<Loaded<Value>> {
    // Without a turn of the event loop where there is nothing to look for: who asks next joins this load.
    const looking = this.#besideLessUrgent(subject, request)
    const beside = looking && (await looking)
    if (beside) return beside
    for (;;) {
      const { load, joined } = this.#join(subject, request)
      try {
        const found = await load.result
        return joined ? { ...found, joined } : found
      } catch (error) {
        // A failure that concerns one consumer fails its reads of a load that it began. Others may have waited for the same load,
        // which is then queued for any of them. A failure of a less urgent load fails no read.
        const concerned = this.#parts.consumerOf(error)
        const isOfAnother =
          concerned !== undefined && (concerned !== load.consumer || concerned !== request.consumer)
        const wasLessUrgent = request.purpose === 'cold' && load.purpose !== 'cold'
        if (!isOfAnother && !wasLessUrgent) throw error
      }
    }
  }

  /** Whether the key was loaded, or found. Never rejects: the load records its failure. */
  inBackground(subject: Of, request: LoadRequest): Promise<boolean> {
    return this.obtain(subject, request).then(
      () => true,
      () => false,
    )
  }

  /** A less urgent load takes only fresh entries from the shared tier. A cold read that would join it may have a stale one. */
  #besideLessUrgent(subject: Of, request: LoadRequest): Promise<Loaded<Value> | undefined> | undefined {
    const { keyOf, shared } = this.#parts
    const { id } = subject
    const inFlight = request.purpose === 'cold' && this.joinable(id, request)
    if (!inFlight || inFlight.purpose === 'cold') return undefined
    return shared
      .get(keyOf(subject), request.isAcceptable)
      .then(found => found && { ...this.keepRead(id, found), joined: false })
  }

  #join(subject: Of, request: LoadRequest): { load: InFlight<Value>; joined: boolean } {
    const { id } = subject
    const { purpose, consumer } = request
    const inFlight = this.joinable(id, request)
    if (inFlight) {
      if (purpose === 'cold') {
        inFlight.waiting = { consumer }
        // The load may be queued after loads of another consumer.
        if (inFlight.isLoading) this.#parts.expedite(subject, consumer)
      }
      return { load: inFlight, joined: true }
    }
    const { promise, resolve } = Promise.withResolvers<Loaded<Value>>()
    const read = Promise.withResolvers<void>()
    const load: InFlight<Value> = {
      purpose,
      consumer: request.consumer,
      generation: this.#parts.purges.generation,
      sharedTierRead: read.promise,
      isLoading: false,
      waiting: undefined,
      // Forgotten when it ends, so that nobody gets an earlier failure.
      result: promise.finally(() => {
        if (this.#inFlight.get(id) === load) this.#inFlight.delete(id)
      }),
    }
    this.#inFlight.set(id, load)
    resolve(this.#run(subject, load, request, read.resolve))
    return { load, joined: false }
  }

  async #run(
    subject: Of,
    load: InFlight<Value>,
    request: LoadRequest,
    onRead: () => void,
  ): Promise<Loaded<Value>> {
    const { keyOf, shared, failures } = this.#parts
    const { id } = subject
    const { isAcceptable } = request
    const entry = isAcceptable && (await shared.get(keyOf(subject), isAcceptable))
    const read = entry && this.keepRead(id, entry)
    load.sharedTierRead = undefined
    onRead()
    if (read) {
      if (load.purpose !== 'cold') failures.clear(id)
      return { ...read, joined: false }
    }
    if (load.purpose === 'cold') this.#refuseCold(id, request.consumer)
    return this.#loadOverFleet(subject, load, request)
  }

  /** @throws BackoffError, or the error of a throttled consumer, where a cold load is not even tried */
  #refuseCold(id: string, consumer: string | undefined): void {
    const { failures, throttled, observer } = this.#parts
    const failure = failures.backoff(id)
    if (failure?.cold) throw new BackoffError(failure)
    const refusal = throttled(consumer, 'cold')
    if (!refusal) return
    observer.onShareUsedUp('cold')
    throw refusal
  }

  async #loadOverFleet(subject: Of, load: InFlight<Value>, request: LoadRequest): Promise<Loaded<Value>> {
    const { keyOf, shared, fleet, failures, consumerOf, observer } = this.#parts
    const { id } = subject
    const { consumer, isAcceptable } = request
    try {
      const { result: entry, joined } = await fleet.run(keyOf(subject), {
        load: holder => this.#loadAndKeep(subject, load, consumer, holder),
        arrived: async () => {
          const found = isAcceptable && (await shared.get(keyOf(subject), isAcceptable))
          if (!found) return undefined
          failures.clear(id)
          return this.#keep(id, found)
        },
        // What was refused to a less urgent load may be granted to a read that waits.
        isOfAll: error =>
          load.purpose === 'cold' && consumerOf(error) === undefined && !ownCodes.has(codeOf(error)),
      })
      return { entry, source: 'provider', joined }
    } catch (error) {
      // The error says nothing of the subject.
      if (consumerOf(error) !== undefined) {
        observer.onShareUsedUp(load.purpose)
        throw error
      }
      throw new BackoffError(this.#recordFailure(id, load.purpose, error))
    }
  }

  async #loadAndKeep(
    subject: Of,
    load: InFlight<Value>,
    consumer: string | undefined,
    holder: string | undefined,
  ): Promise<MemoryEntry<Value>> {
    const { keyOf, shared, failures, expedite } = this.#parts
    const { id } = subject
    const queued = this.#parts.load(subject, load.purpose, consumer)
    load.isLoading = true
    if (load.waiting) expedite(subject, load.waiting.consumer)
    const loaded = await queued
    const entry = this.#keep(id, loaded)
    failures.clear(id)
    if (await shared.set(keyOf(subject), loaded, holder)) return entry
    // This process was stalled, and has lost its lease: another instance may have written a newer entry.
    const newer = await shared.get(keyOf(subject), ({ fetchedAt }) => fetchedAt > loaded.fetchedAt)
    return newer ? this.#keep(id, newer) : entry
  }

  #recordFailure(id: string, purpose: Purpose, error: unknown): Failure {
    const { memory, policy, failures, uncached, clock, observer } = this.#parts
    const failure = failures.record(id, error, purpose === 'cold')
    if (purpose === 'cold') uncached.add(id)
    const entry = memory.peek(id)
    const usableUntil = entry ? Math.floor(policy.usableUntil(entry, clock.now())) : null
    observer.onLoadFailure({ id, purpose, error, usableUntil })
    return failure
  }
}
