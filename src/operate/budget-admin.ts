// The budget admin: what is spent at the provider and until when it is closed, read from the store alone, and reopening. A
// running gateway follows a reopening with its next heartbeat; provider/spending-ledger.ts says how.

import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { budgetSettingsIn, protocolIn } from '../provider/account.ts'
import { milliSpent, windowsAround, withAside } from '../provider/spending-windows.ts'
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
    /** Less what is set aside. */
    readonly limit: number
    /** The part set aside for gateways without the store. */
    readonly aside: number
    readonly used: number
    readonly left: number
    readonly resetsAt: string
  }[]
  /** The share of every limit that is kept for cells with nothing cached. */
  readonly reserve: number
}

/** The former closure. `closedUntil` is null when the budget was open. */
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

  return {
    /** @throws StoreError */
    show: async (): Promise<BudgetReport> => {
      const now = clock.now()
      const windows = windowsAround(limits, now, 0).map(window => withAside(window, settings, unit))
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
      return {
        at: isoOf(now),
        account,
        ...closureReport(closure),
        reopenedAt: reopenedAt === 0 ? null : isoOf(reopenedAt),
        windows: windows.map(({ span, limit, aside = 0, endsAt }, i) => {
          const { charged, refunded } = spent[i] ?? nothing
          const used = Math.max(0, charged - refunded)
          return {
            name: span,
            limit: limit / 1000,
            aside: aside / 1000,
            used: used / 1000,
            left: Math.max(0, limit - used) / 1000,
            resetsAt: isoOf(endsAt),
          }
        }),
        reserve,
      }
    },
    /** Ends the closure for all gateways of the account. @throws StoreError */
    reopen: async (): Promise<ReopenReport> => {
      const { closure, reopenedAt } = await store.reopen(account, clock.now())
      return { at: isoOf(reopenedAt), account, ...closureReport(closure) }
    },
  }
}
