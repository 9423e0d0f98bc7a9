// How many points may be asked of the provider now: its limits shared by all gateways of an account, a reserve for cells
// with nothing cached, and how far freshness has to stretch for the day to suffice. A request is charged beforehand to
// every window that the provider may count it in. Counting and sharing are the ledger's; what a request cost is told by
// whoever sent it.

import { costOf, type RequestOutcome } from './request-cost.ts'
import { createLedger, type LedgerParts } from './spending-ledger.ts'
import {
  type BudgetLimits,
  dayEndAfter,
  type LimitedWindow,
  milliAllowed,
  milliSpent,
  type SpanName,
  windowsAround,
  windowsBetween,
} from './spending-windows.ts'
import { priceOf, stretchAt } from './stretch.ts'

export type BudgetOptions = {
  /** A short hash that names the account: who shares it shares the budget. */
  readonly provider: string
  readonly limits: BudgetLimits
  /** The share of every limit, 0 to 1, that only cold cells may use. */
  readonly reserve: number
  /** The weight of one point. */
  readonly unit: number
  /** The weight of a request that the provider answers with an error. */
  readonly weightOfFailure: number
  /** By how much the provider's clock may differ from ours. */
  readonly marginMs?: number
  /** How long a request is out at the most: it is given up then. The provider counts it by that time. */
  readonly longestRequestMs: number
  /** How many gateways share the account, undefined while that is not known: each has that share while the store is away. */
  readonly instances: () => number | undefined
}

/** `cold`: a consumer waits and nothing is cached. `refresh`: something older could be served. */
export type Purpose = 'cold' | 'refresh'

/** What may be asked, in one request. */
export type Lease = {
  readonly points: number
  /** When asking for more makes sense, ms since the epoch; null when all was granted. */
  readonly retryAt: number | null
  /**
   * Whether the request may leave now, to be asked right before it does. False when so much time has passed that the
   * provider may count it in a window that it was not charged to.
   */
  isValid(): boolean
  /** To be called once when the request has ended, however it did; calls after the first change nothing. */
  done(outcome: RequestOutcome): Promise<void>
}

/** Amounts are in the provider's weight. */
export type BudgetState = {
  readonly windows: readonly { readonly name: SpanName; readonly limit: number; readonly used: number }[]
  readonly closedUntil: number | null
  /** False while a gateway counts for itself, because the store is away. */
  readonly shared: boolean
}

/** No method rejects: a store that is away makes the budget smaller and not absent. */
export type Budget = {
  take(points: number, purpose: Purpose): Promise<Lease>
  /** The provider says that a limit is reached: nobody who shares the account asks before this instant. */
  limited(until: number): Promise<void>
  closedUntil(): number | null
  /** How many times longer than usual things must stay fresh, by what was last seen of the day. At least 1. */
  stretch(demandPerDay: number): number
  /** Asks the store what was spent: at the start, and now and then where little is taken. */
  look(): Promise<void>
  state(): BudgetState
}

type Charge = { readonly weight: number; readonly windows: readonly LimitedWindow[] }

const defaultMarginMs = 2_000
// What stands in the way other than a full window ends soon: requests that are out, a store that is away.
const retrySoonMs = 1_000

export const createBudget = (options: BudgetOptions, parts: LedgerParts): Budget => {
  const { limits, reserve, longestRequestMs, marginMs = defaultMarginMs } = options
  const { clock } = parts
  const unit = milliSpent(options.unit)
  const failure = milliSpent(options.weightOfFailure)
  const unlimited = Object.values(limits).every(limit => limit === null)
  const chargedAheadMs = longestRequestMs + marginMs
  const ledger = createLedger({ ...options, chargedAheadMs }, parts)
  // What was saved while demand paused is kept for the rest of the day: loads come in waves, and freshness that follows
  // each of them would be short before the last.
  let dearest = { day: '', price: 0 }

  const windowsNow = (): LimitedWindow[] => windowsAround(limits, clock.now(), marginMs)
  /** Those that the provider may count a request in that leaves now: it does so when the request ends. */
  const windowsOfRequest = (): LimitedWindow[] =>
    windowsBetween(limits, clock.now() - marginMs, clock.now() + chargedAheadMs)
  const limitsFor = (purpose: Purpose, windows: readonly LimitedWindow[]): readonly LimitedWindow[] =>
    purpose === 'cold'
      ? windows
      : windows.map(window => ({ ...window, limit: milliAllowed((window.limit / 1000) * (1 - reserve)) }))

  const finish = async ({ weight, windows }: Charge, outcome: RequestOutcome): Promise<void> => {
    const latest = clock.now() + marginMs
    const cost = costOf(outcome, weight, failure)
    // A request whose end was not seen may be counted later.
    const costIn = ({ beginsAt }: LimitedWindow) => (beginsAt > latest && outcome !== 'unknown' ? 0 : cost)
    const charged = new Set(windows.map(({ name }) => name))
    const corrections = [
      // Windows that are over by now can refuse nobody any more.
      ...windows
        .filter(({ endsAt }) => endsAt + marginMs > clock.now())
        .map(window => ({ window, by: costIn(window) - weight })),
      // One that ended later than any should: its process stood still.
      ...windowsNow()
        .filter(({ name }) => !charged.has(name))
        .map(window => ({ window, by: cost })),
    ].filter(({ by }) => by !== 0)
    if (corrections.length > 0) await ledger.settle(corrections)
  }

  const leaseOf = (points: number, retryAt: number | null, charge?: Charge): Lease => {
    const charged = new Set(charge?.windows.map(({ name }) => name))
    let isDone = false
    return {
      points,
      retryAt,
      isValid: () => !charge || windowsOfRequest().every(({ name }) => charged.has(name)),
      done: async outcome => {
        if (!charge || isDone) return
        isDone = true
        await finish(charge, outcome)
      },
    }
  }

  const retryAtFor = (full: readonly LimitedWindow[]): number => {
    const now = clock.now()
    const closed = ledger.closedUntil()
    // Later ones are full of requests that are out, and have room again when those end.
    const ends = full
      .filter(({ beginsAt }) => beginsAt <= now + marginMs)
      .map(({ endsAt }) => endsAt + marginMs)
    return closed === null && ends.length === 0 ? now + retrySoonMs : Math.max(closed ?? 0, ...ends)
  }

  return {
    take: async (points, purpose) => {
      const wanted = Math.max(0, Math.floor(points))
      const closed = ledger.closedUntil()
      if (closed !== null && wanted > 0) return leaseOf(0, closed)
      if (unlimited || wanted === 0) return leaseOf(wanted, null)
      const windows = windowsOfRequest()
      const { granted, full } = await ledger.reserve(limitsFor(purpose, windows), wanted * unit, unit)
      const retryAt = granted < wanted * unit ? retryAtFor(full) : null
      return leaseOf(granted / unit, retryAt, granted > 0 ? { weight: granted, windows } : undefined)
    },
    limited: async until => {
      if (unlimited) ledger.closeHere(until)
      else await ledger.close(until)
    },
    closedUntil: () => ledger.closedUntil(),
    stretch: demandPerDay => {
      const now = clock.now()
      const day = windowsAround({ minute: null, hour: null, day: limits.day }, now, 0)[0]
      if (!day || limits.day === null) return 1
      if (day.name !== dearest.day) dearest = { day: day.name, price: 0 }
      const spent = ledger.used(day) / 1000
      const price = priceOf({ limit: limits.day, reserve, spent, msLeft: dayEndAfter(now) - now })
      dearest.price = Math.max(dearest.price, price)
      return stretchAt(dearest.price, demandPerDay)
    },
    look: async () => {
      if (!unlimited) await ledger.look(windowsNow())
    },
    state: () => ({
      windows: windowsAround(limits, clock.now(), 0).map(window => ({
        name: window.span,
        limit: window.limit / 1000,
        used: ledger.used(window) / 1000,
      })),
      closedUntil: ledger.closedUntil(),
      shared: ledger.shared(),
    }),
  }
}
