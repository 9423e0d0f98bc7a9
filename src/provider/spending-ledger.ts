// The ledger of an account: reserves and settles in the store that all gateways of the account share. While the store is away, a
// gateway spends its part of the outage reserve. Every step reports to the store whatever it lacks.

import { type Clock, clockToleranceMs } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Closure, SpendingClaim, SpendingReply, SpendingStore } from '../stores/spending-store.ts'
import type { Correction } from './charge.ts'
import { type LocalGrant, OutageReserve, type ReserveRequest, type Room } from './outage-reserve.ts'
import type { LimitedWindow } from './spending-windows.ts'
import { type Count, latest, netOf, nothing, plus, WindowCounts } from './window-counts.ts'

/** Called once when the store is away, with the reason, and once when it is back. */
export type BudgetObserver = {
  storeAway(reason: string): void
  storeBack(): void
  /** An operator reopened the budget. @param closedUntil the closure here that this ended; null when it was open */
  reopened(closedUntil: number | null): void
}

export type LedgerParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  readonly observer: BudgetObserver
}

/** Its short name, and how many gateways share it; undefined while that is not known. */
type Account = { readonly provider: string; readonly instances: () => number | undefined }

/** `isLocal`: granted without the store. */
type Granted = LocalGrant & { readonly isLocal: boolean }

type Step = {
  readonly wanted?: number
  readonly claims?: readonly SpendingClaim[]
  readonly unit?: number
  readonly corrections?: readonly Correction[]
  /** Whether the store gets what it lacks. */
  readonly reports?: boolean
}

/** A count in a step, and what the store gets of it. */
type Reported = { readonly count: Count; readonly added: Count['pending'] }

/** No method rejects when the store is away. Amounts are whole thousandths of a weight. */
export class SpendingLedger {
  readonly #account: Account
  readonly #parts: LedgerParts
  readonly #counts = new WindowCounts()
  readonly #closure: ClosureState
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #outage: OutageReserve
  #isAway = false
  #backAt = 0
  #reconciling: Promise<void> | undefined
  #hasEnded = false

  constructor(account: Account, parts: LedgerParts) {
    this.#account = account
    this.#parts = parts
    this.#closure = new ClosureState(parts)
    this.#outage = new OutageReserve(account.instances, parts.clock)
  }

  reserve(request: ReserveRequest): Promise<Granted> {
    return this.#tracked(this.#reserve(request))
  }

  /** @param isLocal whether the grant that is corrected was made without the store */
  settle(corrections: readonly Correction[], isLocal: boolean): Promise<void> {
    for (const { window, by, consumers } of corrections) {
      const count = this.#counts.of(window)
      this.#counts.add(count, by)
      if (isLocal) this.#counts.addGranted(count, by, consumers)
    }
    return this.#isAway ? Promise.resolve() : this.#tracked(this.#tryToSpend([], { corrections }))
  }

  /**
   * Sends no request before this instant: takes effect here immediately, and elsewhere when the promise resolves. Has no effect
   * when an operator reopened the budget and this process does not know it yet. @param reason for operators
   */
  close(until: number, reason: string): Promise<void> {
    this.#closure.close(until, reason)
    return this.#tracked(this.#tryToSpend([], {}))
  }

  /** Reports to the store what it lacks, and reads what it has for the windows. One at a time, so that an outage is tried once. */
  reconcile(windows: readonly LimitedWindow[]): Promise<void> {
    this.#reconciling ??= this.#tracked(
      this.#reconcileOnce(windows).finally(() => {
        this.#reconciling = undefined
      }),
    )
    return this.#reconciling
  }

  /** The count of a window as last read from the store, plus what was spent here since. */
  used(window: LimitedWindow): number {
    return this.#counts.used(window)
  }

  /** Whether one more unit has room as far as is known here, and the windows that have none. */
  room(windows: readonly LimitedWindow[], unit: number): Room {
    if (this.#isAway) return this.#outage.room(this.#counts, windows, unit)
    const full = windows.filter(window => this.#counts.used(window) + unit > window.limit)
    return { hasRoom: full.length === 0, full }
  }

  /** The closure in force; null when open. */
  closure(): Closure | null {
    return this.#closure.now()
  }

  /** When this process noticed the last reopening by an operator, ms since the epoch; null without one. */
  reopenedHereAt(): number | null {
    return this.#closure.reopenedHereAt
  }

  /** False while the store is away. */
  shared(): boolean {
    return !this.#isAway
  }

  /** When the store was back last after it had been away, ms since the epoch; 0 if never. */
  backAt(): number {
    return this.#backAt
  }

  /** Whether the store is away, or lacks something that was spent here. */
  hasPending(): boolean {
    return this.#isAway || this.#counts.hasPending()
  }

  /** Whether the store lacks nothing, and nothing was granted without it in windows that still matter. */
  isSettled(): boolean {
    this.#counts.expire(this.#parts.clock.now())
    return !this.hasPending() && !this.#counts.all().some(({ granted }) => granted !== 0)
  }

  /** Waits for the steps in the store that are under way. Failures of later ones are no outage: the store is being closed. */
  async end(): Promise<void> {
    await Promise.all(this.#underWay)
    this.#hasEnded = true
  }

  #tracked<Value>(step: Promise<Value>): Promise<Value> {
    const ended = step.finally(() => this.#underWay.delete(ended))
    this.#underWay.add(ended)
    return ended
  }

  async #reserve(request: ReserveRequest): Promise<Granted> {
    const { windows, unit } = request
    if (this.#isAway) await this.reconcile(windows)
    if (this.#isAway) return this.#reserveLocally(request)
    try {
      const { granted, claims, spent } = await this.#spend(windows, request)
      const full = windows.filter(({ limit }, i) => limit - netOf(spent[i] ?? nothing) < unit)
      return { granted, full, claims, isLocal: false }
    } catch {
      return this.#reserveLocally(request)
    }
  }

  #reserveLocally(request: ReserveRequest): Granted {
    return { ...this.#outage.reserve(this.#counts, request, this.closure() !== null), isLocal: true }
  }

  async #reconcileOnce(windows: readonly LimitedWindow[]): Promise<void> {
    try {
      // A store that hangs may apply every try later: nothing is reported to it before it answers.
      if (this.#isAway) await this.#spend(windows, { reports: false })
      await this.#spend(windows, {})
    } catch {
      return
    }
    if (!this.#isAway) return
    this.#isAway = false
    this.#backAt = this.#parts.clock.now()
    this.#parts.observer.storeBack()
  }

  async #tryToSpend(windows: readonly LimitedWindow[], step: Step): Promise<void> {
    await this.#spend(windows, step).catch(() => {})
  }

  /** @throws StoreError, after which the store is away */
  async #spend(windows: readonly LimitedWindow[], step: Step): Promise<SpendingReply> {
    const { wanted = 0, claims = [], unit = 1, corrections = [], reports = true } = step
    const now = this.#parts.clock.now()
    this.#counts.expire(now)
    this.#outage.instances()
    const reported = this.#beginReport(windows, now, reports)
    try {
      const reply = await this.#parts.store.spend({
        ...{ provider: this.#account.provider, now, wanted, claims, unit },
        windows: reported.map(({ count: { window, stored }, added }, i) => ({
          name: window.name,
          limit: i < windows.length ? window.limit : null,
          keepUntil: window.keepUntil,
          shares: window.shares,
          known: stored,
          added,
        })),
        returns: returnsOf(corrections, reported),
        closure: this.closure(),
        reopenedAt: this.#closure.reopenedAt ?? null,
      })
      for (const [i, { count, added }] of reported.entries()) {
        count.reporting = plus(count.reporting, added, -1)
        count.pending = plus(count.pending, added, -1)
        count.stored = latest(count.stored, reply.spent[i])
      }
      this.#closure.note(reply)
      return reply
    } catch (cause) {
      for (const { count, added } of reported) {
        count.reporting = plus(count.reporting, added, -1)
        // The store may have it: what was given back is dropped, so that none counts twice.
        count.pending = plus(count.pending, { charged: 0, refunded: added.refunded }, -1)
      }
      this.#noteAway(cause)
      throw cause
    }
  }

  /** The windows of a step, then the others that the store lacks something of. */
  #beginReport(windows: readonly LimitedWindow[], now: number, reports: boolean): readonly Reported[] {
    const wanted = windows.map(window => this.#counts.of(window))
    const others = this.#counts.current(now).filter(count => !wanted.includes(count))
    return [...wanted, ...others].map(count => {
      const added = reports ? plus(count.pending, count.reporting, -1) : nothing
      count.reporting = plus(count.reporting, added)
      return { count, added }
    })
  }

  #noteAway(cause: unknown): void {
    if (this.#isAway) return
    this.#isAway = true
    this.#outage.begin()
    if (!this.#hasEnded) this.#parts.observer.storeAway(messageOf(cause))
  }
}

const returnsOf = (corrections: readonly Correction[], reported: readonly Reported[]) => {
  const positions = new Map(reported.map(({ count }, i) => [count.window.name, i]))
  return corrections.flatMap(({ window, consumers = [] }) => {
    const position = positions.get(window.name)
    return position === undefined
      ? []
      : consumers.map(({ consumer, by }) => ({ consumer, window: position, by: -by }))
  })
}

/** The closure that this gateway knows of, and the last reopening. */
class ClosureState {
  readonly #parts: Pick<LedgerParts, 'clock' | 'observer'>
  #closure: Closure | null = null
  /** The last reopening as the store returned it; undefined before its first reply. */
  reopenedAt: number | undefined
  reopenedHereAt: number | null = null

  constructor(parts: Pick<LedgerParts, 'clock' | 'observer'>) {
    this.#parts = parts
  }

  /** The end counts by the clock that closed it: a clock that was set back since makes it meaningless. */
  now(): Closure | null {
    const now = this.#parts.clock.now()
    const closure = this.#closure
    return closure && closure.until > now && closure.at <= now + clockToleranceMs ? closure : null
  }

  close(until: number, reason: string): void {
    if (until > (this.now()?.until ?? 0)) this.#closure = { until, at: this.#parts.clock.now(), reason }
  }

  note(stored: Pick<SpendingReply, 'closure' | 'reopenedAt'>): void {
    // A reply that a later reopening has overtaken.
    if (this.reopenedAt !== undefined && stored.reopenedAt < this.reopenedAt) return
    if (this.reopenedAt !== undefined && stored.reopenedAt > this.reopenedAt) {
      const before = this.now()
      this.#closure = null
      this.reopenedHereAt = this.#parts.clock.now()
      this.#parts.observer.reopened(before?.until ?? null)
    }
    this.reopenedAt = stored.reopenedAt
    if (stored.closure && stored.closure.until > (this.now()?.until ?? 0)) this.#closure = stored.closure
  }
}
