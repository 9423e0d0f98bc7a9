// The state of each upstream where there are several.

import type { Upstream } from '../cache/upstream.ts'
import { isoOf, isoOrNull } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { upstreamsIn } from '../config/upstreams.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { SpendingStore } from '../stores/spending-store.ts'
import { budgetOfStore } from './budget-admin.ts'
import type { StatusReport } from './reports/status-report.ts'

type UpstreamStatus = StatusReport['upstreams'][number]

export const upstreamStatuses = ({ accounts }: Pick<Upstream, 'accounts'>): UpstreamStatus[] => {
  const next = accounts.next().upstream
  return accounts.all.flatMap(({ name, account: { breaker, budget, lastRequests } }) => {
    if (name === undefined) return []
    const { state, openUntil } = breaker.state()
    const { successAt, failure } = lastRequests
    const spending = budget.state()
    return [
      {
        name,
        inUse: next?.name === name,
        circuit: state,
        retryAt: isoOrNull(openUntil ?? spending.closedUntil),
        lastSuccessAt: isoOrNull(successAt),
        lastFailure: failure && { ...failure, at: isoOf(failure.at) },
        ...spendingStatus(spending),
      },
    ]
  })
}

/** What the store knows of the upstreams of a configuration. @throws StoreError */
export const upstreamStatusesOfStore = async (
  config: Config,
  store: SpendingStore,
  clock: Clock,
): Promise<UpstreamStatus[]> => {
  if (config.provider.fallbacks.length === 0) return []
  return Promise.all(
    upstreamsIn(config).map(async ({ name, config: own }) => {
      const budget = budgetOfStore(own, { store, clock })
      await budget.reconcile()
      const unknown = { inUse: null, circuit: null, lastSuccessAt: null, lastFailure: null }
      return { name, ...unknown, retryAt: isoOrNull(budget.closedUntil()), ...spendingStatus(budget.state()) }
    }),
  )
}

const spendingStatus = ({ windows, closedUntil, closedBecause }: BudgetState) => ({
  closure: closedUntil === null ? null : { until: isoOf(closedUntil), reason: closedBecause },
  windows: windows.map(window => ({ ...window, resetsAt: isoOf(window.resetsAt) })),
})
