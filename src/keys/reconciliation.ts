// What a partition of the counts does after the store, or messages of other instances, were lost: it reports all counts, in short steps
// between the batches, leaves others the time to report theirs, and reads what they counted meanwhile.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { UsageGrant } from '../stores/store.ts'
import {
  type BatchEntry,
  type Count,
  isUnconfirmed,
  noteUsed,
  type OutageParts,
  type PartitionStatus,
} from './count.ts'

export type ReconciliationParts = Pick<OutageParts, 'store' | 'whenStoreIsDown' | 'instances'> & {
  /** The start of the latest window that has begun or of which this instance has counted anything. */
  readonly latestStart: () => number
  /** The counts of this partition, with undefined for each count of another one. */
  readonly counts: () => Iterator<Count | undefined>
  /** The store's clock. */
  readonly clock: Clock
  readonly observer: {
    stopped(reason: string): void
    /** @param reconciled units that were admitted locally and are in the store now */
    resumed(reconciled: number): void
  }
}

/** The batches of a partition. */
type Batches = {
  commit(entries: readonly BatchEntry[]): Promise<UsageGrant[]>
  commitWithRetry(entries: readonly BatchEntry[]): Promise<UsageGrant[]>
  /** Runs a step that commits, after those before it. */
  inTurn(step: () => Promise<void>): Promise<void>
  flushSoon(): void
}

/** Which counts are taken, whether to take more, and a pause between two steps. */
type Steps = {
  readonly isWanted?: (count: Count) => boolean
  readonly mayContinue?: () => boolean
  readonly pauseMs?: number
}

// Long enough for every instance to notice that the store is back and to report what it admitted.
export const reconcileForMs = 2_000
// The size of a step between batches; a request waits for at most one step.
const maxPerStep = 100
const maxVisitedPerStep = 2_000
const pauseBetweenReadsMs = 5
// Without messages: how stale a count may be that an allowance is computed from.
const readEveryMs = 1_000

export class Reconciliation {
  readonly #status: PartitionStatus
  readonly #batches: Batches
  readonly #parts: ReconciliationParts
  readonly #now: () => number
  #probing: Promise<void> | undefined
  #reconciledAt = 0
  // Until it counts again: what others reported before a loss may be missing, however often this one reports.
  #hasLostCounts = false
  // Since the last loss others may have counted what these do not know.
  #unread: Iterator<Count | undefined> | undefined
  #readAt = Number.NEGATIVE_INFINITY

  /** @param now in ms, from any beginning */
  constructor(status: PartitionStatus, batches: Batches, parts: ReconciliationParts, now: () => number) {
    this.#status = status
    this.#batches = batches
    this.#parts = parts
    this.#now = now
  }

  /** The store did not take a batch. */
  goAway(error: unknown): void {
    // While it stays away, a probe that fails is no further loss.
    if (this.#status.state !== 'away') this.#onLoss()
    this.#stopCounting(messageOf(error), 'away')
    this.#batches.flushSoon()
  }

  /** Messages of other instances may have been lost, and the store may have lost counts. */
  onMessagesLost(): void {
    if (this.#status.state === 'away') return
    const { whenStoreIsDown } = this.#parts
    // Other instances may be admitting locally.
    if (whenStoreIsDown === 'share')
      this.#stopCounting('the subscription to the counts of other gateways was lost', 'reconciling')
    this.#onLoss()
    // Requests may wait for it.
    if (whenStoreIsDown === 'refuse' && this.#status.state === 'counting') void this.probe()
  }

  /** Reports all counts after a loss, or reads what others counted where no messages arrive. */
  probe(): Promise<void> {
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  /** Reports what the store has not confirmed, whatever the state; never rejects. */
  report(): Promise<void> {
    return this.#reportUnconfirmed().catch(() => {})
  }

  /** Reports counts, and takes what the store says as their last known count. */
  async read(part: readonly Count[]): Promise<void> {
    const grants = await this.#batches.commitWithRetry(part.map(reportOf))
    part.forEach((count, i) => {
      const used = grants[i]?.used
      if (used !== undefined) noteUsed(count, used, count.confirmed, this.#status.readSince)
    })
  }

  #stopCounting(reason: string, next: 'away' | 'reconciling'): void {
    if (this.#status.state === 'counting') {
      this.#status.latestStartBefore = this.#parts.latestStart()
      this.#parts.observer.stopped(reason)
    }
    this.#status.state = next
  }

  // Everything has to be reported again.
  #onLoss(): void {
    this.#status.isReported = false
    this.#status.losses += 1
    this.#unread = undefined
  }

  #resume(): void {
    const status = this.#status
    const { observer, counts } = this.#parts
    if (status.state !== 'counting') observer.resumed(status.reconciled)
    status.state = 'counting'
    status.reconciled = 0
    this.#hasLostCounts = false
    if (this.#mayOthersCount()) {
      status.readSince = status.losses
      this.#unread = counts()
    }
    this.#batches.flushSoon()
  }

  #mayOthersCount(): boolean {
    return this.#parts.whenStoreIsDown === 'share' && this.#parts.instances() !== 1
  }

  async #probeOnce(): Promise<void> {
    const status = this.#status
    try {
      if (!status.isReported) await this.#reconcile()
      else if (status.state === 'counting') await this.#readOthers()
      else if (!isStillToCome(this.#steadyClock(), this.#reconciledAt, reconcileForMs)) this.#resume()
    } catch (error) {
      this.goAway(error)
    }
  }

  // The clock of the store that came back may be another one.
  #steadyClock(): { now(): number } {
    const { now, elapsed = now } = this.#parts.clock
    return { now: elapsed }
  }

  /** Reports all counts; then others have two seconds to report theirs. */
  async #reconcile(): Promise<void> {
    const status = this.#status
    const { whenStoreIsDown } = this.#parts
    const before = status.losses
    await this.#reportAll()
    if (status.losses !== before) return
    // With `refuse` nothing is admitted locally, so there is nothing to wait for unless the store lost counts.
    if (whenStoreIsDown === 'refuse' && !this.#hasLostCounts) {
      status.isReported = true
      this.#resume()
      return
    }
    this.#stopCounting('the store lost its counts', 'reconciling')
    this.#batches.flushSoon()
    // What was admitted locally until now.
    await this.#reportUnconfirmed()
    if (status.losses !== before) return
    status.isReported = true
    this.#reconciledAt = this.#steadyClock().now() + reconcileForMs
  }

  /** Reports all counts, and notes whether the store had lost any. */
  async #reportAll(): Promise<void> {
    const { store, counts } = this.#parts
    // Shows whether the store answers where there is no count.
    await store.time()
    const report = async (part: readonly Count[]): Promise<void> => {
      const known = part.map(({ confirmed }) => confirmed)
      const grants = await this.#batches.commit(part.map(reportOf))
      this.#hasLostCounts ||= grants.some(({ before }, i) => before < (known[i] ?? 0))
    }
    // First what was admitted locally: others wait for that, for two seconds.
    await this.#inSteps(counts(), report, { isWanted: isUnconfirmed })
    await this.#inSteps(counts(), report)
  }

  #reportUnconfirmed(): Promise<void> {
    const report = async (part: readonly Count[]): Promise<void> => {
      await this.#batches.commit(part.map(reportOf))
    }
    return this.#inSteps(this.#parts.counts(), report, { isWanted: isUnconfirmed })
  }

  /** Reads the counts that others may have changed: after a loss, and once a second where no messages of them arrive. */
  async #readOthers(): Promise<void> {
    const { store, counts } = this.#parts
    const before = this.#status.losses
    const read = (part: readonly Count[]) => this.read(part)
    const gently = { mayContinue: () => this.#status.losses === before, pauseMs: pauseBetweenReadsMs }
    const rest = this.#unread
    if (rest) {
      await this.#inSteps(rest, read, gently)
      if (this.#unread === rest) this.#unread = undefined
    } else if (!store.usageMessagesArrive() && this.#mayOthersCount()) {
      if (this.#now() - this.#readAt < readEveryMs) return
      this.#readAt = this.#now()
      await this.#inSteps(counts(), read, gently)
    }
  }

  /** Takes counts in steps, each of one window and in its turn, and leaves the turn of the event loop after each. */
  async #inSteps(
    all: Iterator<Count | undefined>,
    step: (part: readonly Count[]) => Promise<void>,
    { isWanted = () => true, mayContinue = () => true, pauseMs = 0 }: Steps = {},
  ): Promise<void> {
    for (let isLast = false; !isLast && mayContinue(); ) {
      const part: Count[] = []
      for (let visited = 0; visited < maxVisitedPerStep && part.length < maxPerStep; visited++) {
        const { value, done } = all.next()
        isLast = done === true
        if (isLast) break
        if (value && isWanted(value)) part.push(value)
      }
      for (const ofWindow of Map.groupBy(part, ({ window }) => window).values())
        await this.#batches.inTurn(async () => (mayContinue() ? step(ofWindow) : undefined))
      await (pauseMs > 0 && !isLast ? pause(pauseMs) : nextTurn())
    }
  }
}

/** An entry that requests no units. */
const reportOf = (count: Count): BatchEntry => {
  const { limit } = count
  return { count, rate: undefined, limit, unitsEach: 0, requested: 0, next: undefined }
}
