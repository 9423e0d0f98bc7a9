// Logs what keeps weather from being loaded: a spent daily budget, once for each UTC day, and a closure after a limit that the provider
// reported, when this gateway learns of it and when it ends.

import { hourMs, isoOf } from '../common/calendar.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { Log } from './log.ts'

// As the alert AbohawaBudgetSpent: the rest is less than a cell weighs, or is kept for requests in flight.
const spentShare = 0.98
const checkEveryMs = 1_000

export const watchBudget = (state: () => BudgetState, now: () => number, log: Log) => {
  // The end of the day, and its limit: a limit that was raised can be spent too.
  let warnedOf = ''
  let reported: number | null = null
  const checkDay = (windows: BudgetState['windows']): void => {
    const day = windows.find(({ name }) => name === 'day')
    if (!day || day.used < day.limit * spentShare) return
    const { limit } = day
    const resetsAt = isoOf(day.resetsAt)
    if (warnedOf === `${resetsAt} ${limit}`) return
    warnedOf = `${resetsAt} ${limit}`
    const next = 'raise provider.budget.perDay if the plan allows more; docs/runbook.md#abohawabudgetspent'
    log.error({ used: Math.round(day.used), limit, resetsAt, next }, 'daily budget spent')
  }
  const check = (): void => {
    const { windows, closedUntil, closedBecause } = state()
    checkDay(windows)
    if (closedUntil === reported) return
    if (closedUntil !== null) {
      // A limit of a minute soon has room again by itself.
      const level = closedUntil - now() > hourMs ? 'error' : 'warn'
      const next =
        'abohawa budget reopen ends it if the provider is wrong; docs/runbook.md#abohawaproviderlimits'
      log[level](
        { closedUntil: isoOf(closedUntil), reason: closedBecause, next },
        'budget closed by a provider limit',
      )
    } else if (reported !== null && reported <= now())
      // One that ends early has its line already: an operator reopened the budget, or the account is another one.
      log.info({ closedUntil: isoOf(reported) }, 'budget open again')
    reported = closedUntil
  }
  check()
  const timer = setInterval(check, checkEveryMs).unref()
  return { close: () => clearInterval(timer) }
}
