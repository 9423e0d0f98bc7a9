// Shows and reopens the provider budget from the store, without a running gateway. Gateways follow with their next heartbeat.

import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { budgetSettingsIn, openBudget, protocolIn } from '../provider/account.ts'
import type { Purpose } from '../provider/charge.ts'
import {
  boundedFor,
  type LimitedWindow,
  milliSpent,
  type SpanName,
  windowsAround,
  withOutageReserve,
} from '../provider/spending-windows.ts'
import { roomOf } from '../stores/fair-share.ts'
import type { Closure, SpendingStore } from '../stores/spending-store.ts'

/** Amounts are in the provider's weight, instants ISO 8601 in UTC. */
export type BudgetReport = {
  readonly at: string
  /** A short hash of the provider's address and key: gateways with the same one share the budget. */
  readonly account: string
  readonly closedUntil: string | null
  /** Why it is closed, where that is known. */
  readonly reason: string | null
  readonly reopenedAt: string | null
  readonly windows: readonly {
    readonly name: 'minute' | 'hour' | 'day'
    /** Without the part set aside. */
    readonly limit: number
    /** The part set aside for gateways that can't reach the store. */
    readonly aside: number
    readonly used: number
    readonly left: number
    readonly resetsAt: string
  }[]
  /** The share of every limit that is kept for cells with nothing cached. */
  readonly reserve: number
}

/** What is left of a window for loads of a purpose: weight, and whole cells. */
export type Room = {
  readonly span: SpanName
  readonly limit: number
  readonly left: number
  /** Cells that fit now, that fit for one new key while others load, and that fit into a new window. */
  readonly cells: number
  readonly oneKey: number
  readonly wholeCells: number
  /** Ms since the epoch. */
  readonly endsAt: number
}

/** The closure that was ended. `closedUntil` is null when the budget was open. */
export type ReopenReport = Pick<BudgetReport, 'at' | 'account' | 'closedUntil' | 'reason'>

export const createBudgetAdmin = (
  config: Config,
  { store, clock }: { readonly store: SpendingStore; readonly clock: Clock },
) => {
  const settings = budgetSettingsIn(config)
  const { provider: account, limits, reserve } = settings
  const unit = milliSpent(protocolIn(config).weightPerCell)
  const closureReport = (closure: Closure | null) => ({
    closedUntil: closure && isoOf(closure.until),
    reason: closure?.reason || null,
  })

  /** The running windows with what is used of each, in thousandths of a weight. */
  const spentNow = async (now: number) => {
    const windows = windowsAround(limits, now, 0)
    const nothing = { charged: 0, refunded: 0 }
    const { spent, closure, reopenedAt } = await store.spend({
      provider: account,
      windows: windows.map(({ name, keepUntil }) => ({
        name,
        keepUntil,
        limit: null,
        known: nothing,
        added: nothing,
      })),
      wanted: 0,
      claims: [],
      returns: [],
      unit,
      now,
      closure: null,
      reopenedAt: null,
    })
    const used = windows.map((window, i): readonly [LimitedWindow, number] => {
      const { charged, refunded } = spent[i] ?? nothing
      return [window, Math.max(0, charged - refunded)]
    })
    return { used, closure, reopenedAt }
  }

  return {
    /** @throws StoreError */
    show: async (): Promise<BudgetReport> => {
      const now = clock.now()
      const { used: windows, closure, reopenedAt } = await spentNow(now)
      return {
        at: isoOf(now),
        account,
        ...closureReport(closure),
        reopenedAt: reopenedAt === 0 ? null : isoOf(reopenedAt),
        windows: windows.map(([window, used]) => {
          const { span, limit, outageReserve = 0, endsAt } = withOutageReserve(window, settings, unit)
          return {
            name: span,
            limit: limit / 1000,
            aside: outageReserve / 1000,
            used: used / 1000,
            left: Math.max(0, limit - used) / 1000,
            resetsAt: isoOf(endsAt),
          }
        }),
        reserve,
      }
    },
    /** What loads of this purpose find in each window, and until when none is sent at all. @throws StoreError */
    room: async (purpose: Purpose): Promise<{ windows: Room[]; closedUntil: number | null }> => {
      const now = clock.now()
      const { used: windows, closure } = await spentNow(now)
      const rooms = windows.map(([window, used]): Room => {
        const { span, limit, shares, endsAt } = boundedFor(purpose, window, settings, unit, now)
        const cellsIn = (amount: number): number => Math.max(0, Math.floor(amount / unit))
        const use = { limit, used, usedBy: 0, isAlone: false }
        return {
          span,
          limit: limit / 1000,
          left: Math.max(0, limit - used) / 1000,
          cells: cellsIn(limit - used),
          oneKey: cellsIn(roomOf(use, shares, unit)),
          wholeCells: cellsIn(limit),
          endsAt,
        }
      })
      return { windows: rooms, closedUntil: closure && closure.until > now ? closure.until : null }
    },
    /** Ends the closure for all gateways of the account. @throws StoreError */
    reopen: async (): Promise<ReopenReport> => {
      const { closure, reopenedAt } = await store.reopen(account, clock.now())
      return { at: isoOf(reopenedAt), account, ...closureReport(closure) }
    },
  }
}

/** The budget as the store has it, for a process that is no gateway. Read after `reconcile`. */
export const budgetOfStore = (
  config: Config,
  parts: { readonly store: SpendingStore; readonly clock: Clock },
): ReturnType<typeof openBudget> =>
  openBudget(config, {
    ...parts,
    instances: () => undefined,
    observer: { storeAway: () => {}, storeBack: () => {}, reopened: () => {} },
  })
