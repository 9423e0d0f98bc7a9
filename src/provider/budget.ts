// The budget for requests to the provider: reserves weight under its limits, which all gateways of an account share, keeps a reserve for
// cells with nothing cached, and computes how far freshness stretches so that the day suffices. Before it is sent, a request is charged to
// every window that the provider may count it in.

import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { type Charge, type Claim, correctionsOf, type Purpose, type Reservation } from './charge.ts'
import type { RequestOutcome } from './errors.ts'
import type { SpendingNow } from './forecast.ts'
import { type LedgerParts, SpendingLedger } from './spending-ledger.ts'
import {
  type BudgetLimits,
  boundedFor,
  type LimitedWindow,
  milliSpent,
  priceOf,
  type ShareSettings,
  spans,
  stretchAt,
  throttledUntil,
  windowsAround,
  windowsBetween,
  withOutageReserve,
} from './spending-windows.ts'

/** The live settings. */
export type BudgetSettings = ShareSettings & {
  /** A short hash of the account; gateways with the same one share the budget. */
  readonly provider: string
  readonly limits: BudgetLimits
  /** The timeout of a request. The provider counts the request by that time. */
  readonly longestRequestMs: number
}

export type BudgetOptions = BudgetSettings & {
  /** The weight of one point. */
  readonly unit: number
  /** The weight of a request that the provider answers with an error. */
  readonly weightOfFailure: number
  /** The largest difference between the provider's clock and this one. */
  readonly marginMs?: number
  /** How many gateways share the account, undefined while unknown; divides what is set aside while the store is away. */
  readonly instances: () => number | undefined
}

/** Amounts are in the provider's weight; limits are less what is set aside for gateways without the store. */
export type BudgetState = {
  readonly windows: readonly SpendingNow[]
  readonly closedUntil: number | null
  /** Why it is closed; null when it is open, and where that is not known. */
  readonly closedBecause: string | null
  /** False while a gateway counts for itself, because the store is away. */
  readonly shared: boolean
}

const defaultMarginMs = 2_000
// Obstacles other than a full window end soon: requests in flight, a store that is away.
const retrySoonMs = 1_000

/** No method rejects: while the store is away the budget is smaller, not absent. */
export class Budget {
  readonly #clock: Clock
  readonly #ledger: SpendingLedger
  readonly #marginMs: number
  /** A cell, and a request that the provider answers with an error, in thousandths of a weight. */
  readonly #unit: number
  readonly #failure: number
  #settings: BudgetSettings
  // When a limit was last raised, or the reserve lowered, here.
  #raisedAt = 0
  // The highest price of the day counts: loads come in waves, and a price that follows each wave would leave too little for the last.
  #highest = { day: '', price: 0 }

  constructor(options: BudgetOptions, parts: LedgerParts) {
    this.#clock = parts.clock
    this.#ledger = new SpendingLedger(options, parts)
    this.#marginMs = options.marginMs ?? defaultMarginMs
    this.#unit = milliSpent(options.unit)
    this.#failure = milliSpent(options.weightOfFailure)
    this.#settings = options
  }

  /** All of these points, for no consumer in particular, or none. */
  reserveWhole(points: number, purpose: Purpose): Promise<Reservation> {
    return this.reserve(points, purpose, [], points)
  }

  /**
   * @param points for no consumer in particular
   * @param together how many points are granted or refused as one
   */
  async reserve(
    points: number,
    purpose: Purpose,
    claims: readonly Claim[] = [],
    together = 1,
  ): Promise<Reservation> {
    const wanted = Math.max(0, Math.floor(points))
    const all = claims.reduce((sum, claim) => sum + claim.points, wanted)
    const closed = this.closedUntil()
    if (closed !== null && all > 0) return this.#reservationOf(0, claims.map(nothing), closed)
    if (this.#isUnlimited() || all === 0) return this.#reservationOf(wanted, claims.map(whole), null)
    const unit = this.#unit
    const windows = this.#windowsOfRequest()
    const { granted, full, isLocal, ...reply } = await this.#ledger.reserve({
      windows: windows.map(window => this.#boundedFor(purpose, window)),
      wanted: wanted * unit,
      claims: claims.map(claim => ({ consumer: claim.consumer, wanted: claim.points * unit })),
      unit: unit * together,
    })
    const consumers = reply.claims.flatMap(({ granted: weight }, i) =>
      weight > 0 ? [{ consumer: claims[i]?.consumer ?? '', weight }] : [],
    )
    const unclaimed = consumers.reduce((sum, { weight }) => sum - weight, granted)
    return this.#reservationOf(
      unclaimed / unit,
      reply.claims.map(({ granted: weight, heldIn }, i) => ({
        points: weight / unit,
        // Where nobody has room it is no matter of shares.
        throttledUntil:
          full.length > 0 || weight >= (claims[i]?.points ?? 0) * unit
            ? null
            : this.#throttledIn(heldIn.flatMap(at => windows[at] ?? [])),
      })),
      granted < all * unit ? this.#retryAtFor(full, isLocal) : null,
      granted > 0 ? { weight: granted, isLocal, consumers, windows } : undefined,
    )
  }

  /** Until when the budget is closed, ms since the epoch; null when it is open. */
  closedUntil(): number | null {
    return this.#ledger.closure()?.until ?? null
  }

  /** When one more cell may have room, ms since the epoch, by the spending as last known; null where it has room now. */
  roomAt(purpose: Purpose): number | null {
    const windows = windowsAround(this.#settings.limits, this.#clock.now(), 0).map(window =>
      this.#boundedFor(purpose, window),
    )
    const { hasRoom, full } = this.#ledger.room(windows, this.#unit)
    return hasRoom && this.closedUntil() === null ? null : this.#retryAtFor(full, !this.#ledger.shared())
  }

  /**
   * Whether the limit that a request met at this instant holds no more, because an operator has reopened or raised the budget,
   * or the store is back.
   */
  isLifted(at: number): boolean {
    if (this.closedUntil() !== null) return false
    const now = this.#clock.now()
    const lifted = Math.max(this.#ledger.reopenedHereAt() ?? 0, this.#raisedAt)
    const backAt = this.#ledger.backAt()
    // A request that was under way then may report the old limit later. A clock that was set back since lifts nothing.
    return (lifted <= now && at <= lifted + this.#chargedAheadMs()) || (backAt <= now && at <= backAt)
  }

  /** How many times longer than usual weather stays fresh, by the day's spending as last known. At least 1. */
  stretch(demandPerDay: number): number {
    const now = this.#clock.now()
    const { limits, reserve } = this.#settings
    const [day] = this.#spendable({ minute: null, hour: null, day: limits.day }, now)
    if (!day) return 1
    if (day.name !== this.#highest.day) this.#highest = { day: day.name, price: 0 }
    const spent = this.#ledger.used(day) / 1000
    const price = priceOf({ limit: day.limit / 1000, reserve, spent, msLeft: day.endsAt - now })
    this.#highest.price = Math.max(this.#highest.price, price)
    return stretchAt(this.#highest.price, demandPerDay)
  }

  /** Reconciles with the store: at the start, and at intervals where little is reserved. */
  async reconcile(): Promise<void> {
    // Without limits there is nothing to share but a closure, and its end.
    if (!this.#isUnlimited() || this.closedUntil() !== null || this.#ledger.hasPending())
      await this.#ledger.reconcile(this.#windowsNow())
  }

  readonly state = (): BudgetState => ({
    windows: this.#spendable(this.#settings.limits, this.#clock.now()).map(window => ({
      name: window.span,
      limit: window.limit / 1000,
      used: this.#ledger.used(window) / 1000,
      resetsAt: window.endsAt,
    })),
    closedUntil: this.closedUntil(),
    // A closure without a reason has an empty one.
    closedBecause: this.#ledger.closure()?.reason || null,
    shared: this.#ledger.shared(),
  })

  /** For the requests that are granted from now on. */
  apply(next: BudgetSettings): void {
    const { limits, reserve } = this.#settings
    if (next.reserve < reserve || spans.some(span => isRaised(limits[span], next.limits[span])))
      this.#raisedAt = this.#clock.now()
    this.#settings = next
    this.#highest = { day: '', price: 0 }
  }

  /** Whether another gateway may have the part of this one, which has ended: it spent nothing of it, and the store knows the rest. */
  isSettled(): boolean {
    return this.#ledger.isSettled()
  }

  /** Before the store is closed: waits for what is under way there. */
  end(): Promise<void> {
    return this.#ledger.end()
  }

  #isUnlimited(): boolean {
    return spans.every(span => this.#settings.limits[span] === null)
  }

  #chargedAheadMs(): number {
    return this.#settings.longestRequestMs + this.#marginMs
  }

  #boundedFor(purpose: Purpose, window: LimitedWindow): LimitedWindow {
    return boundedFor(purpose, window, this.#settings, this.#unit, this.#clock.now())
  }

  /** The running windows, less what is set aside. */
  #spendable(limits: BudgetLimits, now: number): LimitedWindow[] {
    return windowsAround(limits, now, 0).map(window => withOutageReserve(window, this.#settings, this.#unit))
  }

  #windowsNow(): LimitedWindow[] {
    return windowsAround(this.#settings.limits, this.#clock.now(), this.#marginMs)
  }

  /** The windows that the provider may count a request in that is sent now: it counts when the request ends. */
  #windowsOfRequest(): LimitedWindow[] {
    const now = this.#clock.now()
    return windowsBetween(this.#settings.limits, now - this.#marginMs, now + this.#chargedAheadMs())
  }

  #reservationOf(
    points: number,
    claims: Reservation['claims'],
    retryAt: number | null,
    charge?: Charge,
  ): Reservation {
    const charged = new Set(charge?.windows.map(({ name }) => name))
    let isSettled = false
    return {
      points,
      claims,
      retryAt,
      isValid: () => !charge || this.#windowsOfRequest().every(({ name }) => charged.has(name)),
      limited: (until, reason) => this.#ledger.close(until, reason),
      settle: async outcome => {
        if (!charge || isSettled) return
        isSettled = true
        await this.#settle(charge, outcome)
      },
    }
  }

  async #settle(charge: Charge, outcome: RequestOutcome): Promise<void> {
    const ended = { at: this.#clock.now(), in: this.#windowsNow() }
    const rules = { marginMs: this.#marginMs, failure: this.#failure }
    const corrections = correctionsOf(charge, outcome, { ...ended, ...rules })
    if (corrections.length > 0) await this.#ledger.settle(corrections, charge.isLocal)
  }

  #throttledIn(windows: readonly LimitedWindow[]): number | null {
    const now = this.#clock.now()
    const spendable = windows.map(window => withOutageReserve(window, this.#settings, this.#unit))
    const usedIn = (window: LimitedWindow): number => this.#ledger.used(window)
    const until = throttledUntil(spendable, this.#settings, usedIn, this.#unit, now)
    if (until === null) return null
    // A share of what this gateway may spend while the store is away is no share of the limit.
    return this.#ledger.shared() ? until : Math.min(until, now + retrySoonMs)
  }

  #retryAtFor(full: readonly LimitedWindow[], isLocal: boolean): number {
    const now = this.#clock.now()
    const closed = this.closedUntil()
    // Later windows are full of requests in flight, and have room again when those end.
    const ends = full
      .filter(({ beginsAt }) => beginsAt <= now + this.#marginMs)
      .map(({ endsAt }) => endsAt + this.#marginMs)
    if (closed === null && ends.length === 0) return now + retrySoonMs
    const at = Math.max(closed ?? 0, ...ends)
    // The store may be back long before an hour is over.
    return isLocal && closed === null ? Math.min(at, now + minuteMs) : at
  }
}

const nothing = () => ({ points: 0, throttledUntil: null })
const whole = ({ points }: Claim) => ({ points, throttledUntil: null })

const isRaised = (before: number | null, after: number | null): boolean =>
  before !== null && (after === null || after > before)
