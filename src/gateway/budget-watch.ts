// Warns when the budget of the day is spent: one line of the log for each UTC day in which it is. The metrics are in
// ops/gauges.ts; what a request gets then is decided by the budget.

import type { Log } from '../ops/log.ts'
import type { BudgetState } from '../provider/budget.ts'

export type BudgetWatch = { close(): void }

// As the alert AbohawaBudgetSpent: the rest is less than a cell weighs, or is kept for requests in flight.
const spentShare = 0.98
const checkEveryMs = 1_000

export const watchBudget = (state: () => BudgetState, log: Log): BudgetWatch => {
  // The end of the day, and its limit: a limit that was raised can be spent too.
  let warnedOf = ''
  const check = (): void => {
    const day = state().windows.find(({ name }) => name === 'day')
    if (!day || day.used < day.limit * spentShare) return
    const resetsAt = new Date(day.resetsAt).toISOString()
    const spent = `${resetsAt} ${day.limit}`
    if (spent === warnedOf) return
    warnedOf = spent
    log.error(
      {
        used: Math.round(day.used),
        limit: day.limit,
        resetsAt,
        next: 'raise provider.budget.perDay if the plan allows more; docs/runbook.md#abohawabudgetspent',
      },
      'the budget of the day is spent, and no weather is loaded before it resets',
    )
  }
  check()
  const timer = setInterval(check, checkEveryMs).unref()
  return { close: () => clearInterval(timer) }
}
