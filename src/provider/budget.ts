// How many points may be asked of the provider now: its limits shared by all gateways of an account, a reserve for cells
// with nothing cached, and how far freshness has to stretch for the day to suffice. Counting and sharing are the
// ledger's; what a request cost is told by whoever sent it.

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
  /** By how much the provider's clock may differ from ours; also the latency that is covered over the whole fleet. */
  readonly marginMs?: number
  /** How many gateways are alive, at least 1: each has that share while the store is away. */
  readonly instances: () => number
}

/** `cold`: a consumer waits and nothing is cached. `refresh`: something older could be served. */
export type Purpose = 'cold' | 'refresh'

/** What may be asked, in one request. */
export type Lease = {
  readonly points: number
  /** When asking for more makes sense, ms since the epoch; null when all was granted. */
  readonly retryAt: number | null
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
  /** The provider answered 429: nobody who shares the account asks before this instant. */
  limited(until: number): Promise<void>
  closedUntil(): number | null
  /** How many times longer than usual things must stay fresh, by what was last seen of the day. At least 1. */
  stretch(demandPerDay: number): number
  /** Asks the store what was spent: at the start, and now and then where little is taken. */
  look(): Promise<void>
  state(): BudgetState
}

type Running = { readonly begunAt: number; readonly weight: number; readonly charged: Set<string> }

const defaultMarginMs = 2_000
// Far longer than any request is out. One that was never told to have ended must not weigh on every minute to come.
const longestRequestMs = 600_000

export const createBudget = (options: BudgetOptions, parts: LedgerParts): Budget => {
  const { limits, reserve, marginMs = defaultMarginMs } = options
  const { clock } = parts
  const unit = milliSpent(options.unit)
  const unlimited = Object.values(limits).every(limit => limit === null)
  const ledger = createLedger(options, parts)
  const running = new Set<Running>()
  // What was saved while demand paused is kept for the rest of the day: loads come in waves, and freshness that follows
  // each of them would be short before the last.
  let dearest = { day: '', price: 0 }

  const windowsNow = (): LimitedWindow[] => windowsAround(limits, clock.now(), marginMs)
  const windowsFor = (purpose: Purpose): LimitedWindow[] =>
    purpose === 'cold'
      ? windowsNow()
      : windowsNow().map(window => ({
          ...window,
          limit: milliAllowed((window.limit / 1000) * (1 - reserve)),
        }))

  // The provider counts a request when it ends, so one that is still out when a window begins belongs into that too,
  // and has to stand there before anything else is taken from it.
  const carryOver = async (requests: Iterable<Running>): Promise<void> => {
    const changes = windowsNow().flatMap(window => {
      const late = [...requests].filter(({ charged }) => !charged.has(window.name))
      for (const { charged } of late) charged.add(window.name)
      return late.length > 0 ? [{ window, by: late.reduce((sum, { weight }) => sum + weight, 0) }] : []
    })
    if (changes.length > 0) await ledger.settle(changes)
  }

  const finish = async (request: Running, outcome: RequestOutcome): Promise<void> => {
    if (!running.delete(request)) return
    const cost = costOf(outcome, request.weight)
    // Windows that are over by now can refuse nobody any more.
    const changes = windowsNow().map(window => ({
      window,
      by: request.charged.has(window.name) ? cost - request.weight : cost,
    }))
    const corrections = changes.filter(({ by }) => by !== 0)
    if (corrections.length > 0) await ledger.settle(corrections)
  }

  const leaseOf = (points: number, retryAt: number | null, request?: Running): Lease => ({
    points,
    retryAt,
    done: async outcome => {
      if (request) await finish(request, outcome)
    },
  })

  return {
    take: async (points, purpose) => {
      const wanted = Math.max(0, Math.floor(points))
      const closed = ledger.closedUntil()
      if (closed !== null && wanted > 0) return leaseOf(0, closed)
      if (unlimited || wanted === 0) return leaseOf(wanted, null)
      for (const request of running)
        if (clock.now() - request.begunAt >= longestRequestMs) running.delete(request)
      await carryOver(running)
      const windows = windowsFor(purpose)
      const { granted, full } = await ledger.reserve(windows, wanted * unit, unit)
      const retryAt = Math.max(ledger.closedUntil() ?? 0, ...full.map(({ endsAt }) => endsAt + marginMs))
      if (granted === 0) return leaseOf(0, retryAt)
      const charged = new Set(windows.map(({ name }) => name))
      const request = { begunAt: clock.now(), weight: granted, charged }
      running.add(request)
      // A slow store may have taken us over a turn.
      await carryOver([request])
      return leaseOf(granted / unit, granted < wanted * unit ? retryAt : null, request)
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
