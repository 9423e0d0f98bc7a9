// The budget for requests to the provider: reserves weight under its limits, which all gateways of an account share, keeps
// a reserve for cells with nothing cached, and computes how far freshness has to stretch for the day to suffice. A request
// is charged beforehand to every window that the provider may count it in. The ledger counts and shares; the sender
// settles what a request cost. Longer than 300 lines, because reservation and settlement share the windows.

import { minuteMs } from '../common/calendar.ts'
import type { RequestOutcome } from './errors.ts'
import type { SpendingNow } from './forecast.ts'
import { createLedger, type LedgerParts } from './spending-ledger.ts'
import {
  type BudgetLimits,
  boundedFor,
  heldUntil,
  type LimitedWindow,
  milliSpent,
  priceOf,
  type ShareSettings,
  spans,
  stretchAt,
  windowsAround,
  windowsBetween,
  withAside,
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

/** `cold`: a consumer waits and nothing is cached. `refresh`: something older could be served. */
export type Purpose = 'cold' | 'refresh'

/** Points that one consumer wants; 0 says that it asks for weather, so that others are not alone. */
export type Claim = { readonly consumer: string; readonly points: number }

/** Weight reserved for one request. */
export type Reservation = {
  /** For no consumer in particular. */
  readonly points: number
  /** For each claim. `heldUntil`: when its consumer's share has room again, ms since the epoch; null where that is no obstacle. */
  readonly claims: readonly { readonly points: number; readonly heldUntil: number | null }[]
  /** When more may be reserved, ms since the epoch; null when all was granted. */
  readonly retryAt: number | null
  /**
   * Whether the request may be sent now; to be called right before. False when so much time has passed that the provider
   * may count it in a window that it was not charged to.
   */
  isValid(): boolean
  /**
   * The provider answered the request with a limit: no gateway of the account that it was sent for sends one before this
   * instant, unless an operator reopens the budget. @param reason for operators
   */
  limited(until: number, reason: string): Promise<void>
  /** Settles the cost once the request has ended, however it did. Only the first call has an effect. */
  settle(outcome: RequestOutcome): Promise<void>
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

export type Budget = ReturnType<typeof createBudget>

type Charge = {
  readonly weight: number
  /** Granted without the store. */
  readonly isLocal: boolean
  /** The parts of it that are the consumers'. */
  readonly consumers: readonly { readonly consumer: string; readonly weight: number }[]
  readonly windows: readonly LimitedWindow[]
}

const defaultMarginMs = 2_000
// Obstacles other than a full window end soon: requests in flight, a store that is away.
const retrySoonMs = 1_000

/** No method rejects: while the store is away the budget is smaller, not absent. */
export const createBudget = (options: BudgetOptions, parts: LedgerParts) => {
  const { marginMs = defaultMarginMs } = options
  const { clock } = parts
  let settings: BudgetSettings = options
  const unit = milliSpent(options.unit)
  const failure = milliSpent(options.weightOfFailure)
  const isUnlimited = (): boolean => spans.every(span => settings.limits[span] === null)
  const chargedAheadMs = (): number => settings.longestRequestMs + marginMs
  const ledger = createLedger(options, parts)
  // When a limit was last raised here.
  let raisedAt = 0
  // The highest price of the day holds: loads come in waves, and a price that follows each of them would leave too little
  // for the last.
  let highest = { day: '', price: 0 }

  const closedUntil = (): number | null => ledger.closure()?.until ?? null
  /** The running windows, less what is set aside. */
  const spendable = (of: BudgetLimits, now: number): LimitedWindow[] =>
    windowsAround(of, now, 0).map(window => withAside(window, settings, unit))
  const windowsNow = (): LimitedWindow[] => windowsAround(settings.limits, clock.now(), marginMs)
  /** The windows that the provider may count a request in that is sent now: it counts when the request ends. */
  const windowsOfRequest = (): LimitedWindow[] =>
    windowsBetween(settings.limits, clock.now() - marginMs, clock.now() + chargedAheadMs())
  const settle = async (
    { weight, isLocal, windows, consumers }: Charge,
    outcome: RequestOutcome,
  ): Promise<void> => {
    const now = clock.now()
    const cost = {
      answered: weight,
      unknown: weight,
      failed: Math.min(failure, weight),
      limited: 0,
      unsent: 0,
    }[outcome]
    // The provider may count a request of unknown outcome later.
    const costIn = ({ beginsAt }: LimitedWindow) =>
      beginsAt > now + marginMs && outcome !== 'unknown' ? 0 : cost
    const charged = new Set(windows.map(({ name }) => name))
    const corrections = [
      // Corrects windows that are not over yet.
      ...windows
        .filter(({ endsAt }) => endsAt + marginMs > now)
        .map(window => ({ window, by: costIn(window) - weight }))
        .map(change => ({ ...change, consumers: partsOf(change.by / weight, consumers) })),
      // Charges windows that the request reached because the process was suspended.
      ...windowsNow()
        .filter(({ name }) => !charged.has(name))
        .map(window => ({ window, by: cost })),
    ].filter(({ by }) => by !== 0)
    if (corrections.length > 0) await ledger.settle(corrections, isLocal)
  }

  const reservationOf = (
    points: number,
    claims: Reservation['claims'],
    retryAt: number | null,
    charge?: Charge,
  ): Reservation => {
    const charged = new Set(charge?.windows.map(({ name }) => name))
    let isSettled = false
    return {
      points,
      claims,
      retryAt,
      isValid: () => !charge || windowsOfRequest().every(({ name }) => charged.has(name)),
      limited: ledger.close,
      settle: async outcome => {
        if (!charge || isSettled) return
        isSettled = true
        await settle(charge, outcome)
      },
    }
  }

  const retryAtFor = (full: readonly LimitedWindow[], isLocal: boolean): number => {
    const now = clock.now()
    const closed = closedUntil()
    // Later windows are full of requests in flight, and have room again when those end.
    const ends = full
      .filter(({ beginsAt }) => beginsAt <= now + marginMs)
      .map(({ endsAt }) => endsAt + marginMs)
    if (closed === null && ends.length === 0) return now + retrySoonMs
    const at = Math.max(closed ?? 0, ...ends)
    // The store may be back long before an hour is over.
    return isLocal && closed === null ? Math.min(at, now + minuteMs) : at
  }

  return {
    /** @param points for no consumer in particular */
    reserve: async (
      points: number,
      purpose: Purpose,
      claims: readonly Claim[] = [],
    ): Promise<Reservation> => {
      const wanted = Math.max(0, Math.floor(points))
      const all = claims.reduce((sum, claim) => sum + claim.points, wanted)
      const closed = closedUntil()
      if (closed !== null && all > 0) return reservationOf(0, claims.map(nothing), closed)
      if (isUnlimited() || all === 0) return reservationOf(wanted, claims.map(whole), null)
      const windows = windowsOfRequest()
      const reply = await ledger.reserve(
        windows.map(window => boundedFor(purpose, window, settings, unit, clock.now())),
        wanted * unit,
        claims.map(claim => ({ consumer: claim.consumer, wanted: claim.points * unit })),
        unit,
      )
      const { granted, full, isLocal } = reply
      const consumers = reply.claims.flatMap(({ granted: weight }, i) =>
        weight > 0 ? [{ consumer: claims[i]?.consumer ?? '', weight }] : [],
      )
      // A share of what this gateway may spend while the store is away is no share of the limit.
      const longestHold = ledger.shared() ? Number.POSITIVE_INFINITY : clock.now() + retrySoonMs
      const heldFor = (heldIn: readonly number[]): number | null => {
        const held = heldIn.flatMap(i => windows[i] ?? []).map(window => withAside(window, settings, unit))
        const until = heldUntil(held, settings, ledger.used, unit, clock.now())
        return until === null ? null : Math.min(until, longestHold)
      }
      const forNobody = consumers.reduce((sum, { weight }) => sum - weight, granted)
      return reservationOf(
        forNobody / unit,
        reply.claims.map(({ granted: weight, heldIn }, i) => ({
          points: weight / unit,
          // Where nobody has room it is no matter of shares.
          heldUntil: full.length > 0 || weight >= (claims[i]?.points ?? 0) * unit ? null : heldFor(heldIn),
        })),
        granted < all * unit ? retryAtFor(full, isLocal) : null,
        granted > 0 ? { weight: granted, isLocal, consumers, windows } : undefined,
      )
    },
    closedUntil,
    /** When one more cell may have room, ms since the epoch, by the spending as last known; null where it has room now. */
    roomAt: (purpose: Purpose): number | null => {
      const now = clock.now()
      const full = windowsAround(settings.limits, now, 0)
        .map(window => boundedFor(purpose, window, settings, unit, now))
        .filter(window => ledger.used(window) + unit > window.limit)
      return full.length === 0 && closedUntil() === null ? null : retryAtFor(full, !ledger.shared())
    },
    /**
     * Whether the limit that a request met at this instant holds no more, because an operator has reopened or raised the budget,
     * or the store is back.
     */
    isLifted: (at: number): boolean => {
      if (closedUntil() !== null) return false
      const now = clock.now()
      const lifted = Math.max(ledger.reopenedHereAt() ?? 0, raisedAt)
      // A request that was under way then may report the former limit after it. A clock that was set back since lifts nothing.
      return (
        (lifted <= now && at <= lifted + chargedAheadMs()) ||
        (ledger.backAt() <= now && at <= ledger.backAt())
      )
    },
    /** How many times longer than usual weather stays fresh, by the day's spending as last known. At least 1. */
    stretch: (demandPerDay: number): number => {
      const now = clock.now()
      const [day] = spendable({ minute: null, hour: null, day: settings.limits.day }, now)
      if (!day) return 1
      if (day.name !== highest.day) highest = { day: day.name, price: 0 }
      const spent = ledger.used(day) / 1000
      const { reserve } = settings
      const price = priceOf({ limit: day.limit / 1000, reserve, spent, msLeft: day.endsAt - now })
      highest.price = Math.max(highest.price, price)
      return stretchAt(highest.price, demandPerDay)
    },
    /** Reconciles with the store: at the start, and at intervals where little is reserved. */
    reconcile: async (): Promise<void> => {
      // Without limits there is nothing to share but a closure, and its end.
      if (!isUnlimited() || closedUntil() !== null || ledger.hasPending())
        await ledger.reconcile(windowsNow())
    },
    state: (): BudgetState => ({
      windows: spendable(settings.limits, clock.now()).map(window => ({
        name: window.span,
        limit: window.limit / 1000,
        used: ledger.used(window) / 1000,
        resetsAt: window.endsAt,
      })),
      closedUntil: closedUntil(),
      // The reason of a closure that nobody gave one for is empty.
      closedBecause: ledger.closure()?.reason || null,
      shared: ledger.shared(),
    }),
    /** For the requests that are granted from now on. */
    apply: (next: BudgetSettings): void => {
      if (spans.some(span => isRaised(settings.limits[span], next.limits[span]))) raisedAt = clock.now()
      settings = next
      highest = { day: '', price: 0 }
    },
    /** Whether another gateway may have the part of this one, which has ended: it spent nothing of it, and the store knows the rest. */
    isSettled: ledger.isSettled,
    /** Before the store is closed: waits for what is under way there. */
    end: ledger.end,
  }
}

const nothing = () => ({ points: 0, heldUntil: null })
const whole = ({ points }: Claim) => ({ points, heldUntil: null })

/** Each consumer's part of a change that is `by` times the whole. */
const partsOf = (by: number, consumers: Charge['consumers']) =>
  consumers.map(({ consumer, weight }) => ({ consumer, by: Math.trunc(by * weight) }))

const isRaised = (before: number | null, after: number | null): boolean =>
  before !== null && (after === null || after > before)
