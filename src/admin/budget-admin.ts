// The budget admin: what is spent at the provider and until when it is closed, read from the store alone, and reopening. A
// running gateway follows a reopening with its next heartbeat; provider/spending-ledger.ts says how.

import { isoOf } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { withAside } from '../provider/consumer-shares.ts'
import { milliSpent, windowsAround } from '../provider/spending-windows.ts'
import type { SpendingStore } from '../stores/store.ts'
import { budgetSettingsIn, protocolIn } from '../upstream/upstream.ts'

/** Amounts are in the provider's weight, instants ISO 8601 in UTC. */
export type BudgetReport = {
  readonly at: string
  /** A short hash of the provider's address and key: gateways with the same one share the budget. */
  readonly account: string
  readonly closedUntil: string | null
  /** Why it is closed, where that is known. */
  readonly reason: string | null
  readonly reopenedAt: string | null
  /** One for each limit. `used` is null where the count can't be read, and then `left` is. */
  readonly windows: readonly {
    readonly name: 'minute' | 'hour' | 'day'
    /** Less what is set aside. */
    readonly limit: number
    /** The part set aside for gateways without the store. */
    readonly aside: number
    readonly used: number | null
    readonly left: number | null
    readonly resetsAt: string
  }[]
  /** The share of every limit that is kept for cells with nothing cached. */
  readonly reserve: number
}

/** The former closure. `closedUntil` is null when the budget was open. */
export type ReopenReport = Pick<BudgetReport, 'at' | 'account' | 'closedUntil' | 'reason'>

export type BudgetAdmin = {
  /** @throws StoreError */
  show(): Promise<BudgetReport>
  /** Ends the closure for all gateways of the account. @throws StoreError */
  reopen(): Promise<ReopenReport>
}

export const createBudgetAdmin = (
  config: Config,
  { store, clock }: { readonly store: SpendingStore; readonly clock: Clock },
): BudgetAdmin => {
  const settings = budgetSettingsIn(config)
  const { provider: account, limits, reserve } = settings
  const unit = milliSpent(protocolIn(config).weightPerCell)
  /** The closure if it is in force. */
  const inForce = (until: number | null, reason: string | null) => {
    const isClosed = until !== null && until > clock.now()
    return { closedUntil: isClosed ? isoOf(until) : null, reason: isClosed ? reason : null }
  }

  return {
    show: async () => {
      const now = clock.now()
      const windows = windowsAround(limits, now, 0).map(window => withAside(window, settings, unit))
      const [{ used }, closure] = await Promise.all([
        store.spending(
          account,
          windows.map(({ name }) => name),
        ),
        store.closure(account),
      ])
      return {
        at: isoOf(now),
        account,
        ...inForce(closure.closedUntil, closure.reason),
        reopenedAt: closure.reopenedAt === 0 ? null : isoOf(closure.reopenedAt),
        windows: windows.map(({ span, limit, aside = 0, endsAt }, i) => {
          const { [i]: count = 0 } = used
          return {
            name: span,
            limit: limit / 1000,
            aside: aside / 1000,
            used: count === null ? null : count / 1000,
            left: count === null ? null : Math.max(0, limit - count) / 1000,
            resetsAt: isoOf(endsAt),
          }
        }),
        reserve,
      }
    },
    reopen: async () => {
      const { closedUntil, reason, reopenedAt } = await store.reopen(account, clock.now())
      return { at: isoOf(reopenedAt), account, ...inForce(closedUntil, reason) }
    },
  }
}
