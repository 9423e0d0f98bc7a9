// Logs what keeps weather from being loaded: the spent budget of the day, one line for each UTC day in which it is, and
// a closure after a limit that the provider reported, one line when this gateway knows of it and one when it is over. The
// metrics are in telemetry/gauges.ts; what a request gets then is decided by the budget.

import { hourMs, isoOf } from '../common/calendar.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { Log } from '../telemetry/log.ts'

export type BudgetWatch = { close(): void }

// As the alert AbohawaBudgetSpent: the rest is less than a cell weighs, or is kept for requests in flight.
const spentShare = 0.98
const checkEveryMs = 1_000

export const watchBudget = (state: () => BudgetState, now: () => number, log: Log): BudgetWatch => {
  const checkSpent = daySpent(log)
  const checkClosed = closureTold(log)
  const check = (): void => {
    const current = state()
    checkSpent(current)
    checkClosed(current, now())
  }
  check()
  const timer = setInterval(check, checkEveryMs).unref()
  return { close: () => clearInterval(timer) }
}

const daySpent = (log: Log) => {
  // The end of the day, and its limit: a limit that was raised can be spent too.
  let warnedOf = ''
  return ({ windows }: BudgetState): void => {
    const day = windows.find(({ name }) => name === 'day')
    if (!day || day.used < day.limit * spentShare) return
    const resetsAt = isoOf(day.resetsAt)
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
}

const closureTold = (log: Log) => {
  let reported: number | null = null
  return ({ closedUntil, closedBecause }: BudgetState, now: number): void => {
    if (closedUntil === reported) return
    if (closedUntil === null) {
      // One that ends early has its line already: an operator reopened the budget, or the account is another one.
      if (reported !== null && reported <= now)
        log.info({ closedUntil: isoOf(reported) }, 'budget is open again')
    } else {
      // A limit of a minute soon has room again by itself.
      const level = closedUntil - now > hourMs ? 'error' : 'warn'
      log[level](
        {
          closedUntil: isoOf(closedUntil),
          reason: closedBecause,
          next: 'abohawa budget reopen ends it if the provider is wrong; docs/runbook.md#abohawaproviderlimits',
        },
        'budget closed: the provider reported a limit, and no weather is loaded before it ends',
      )
    }
    reported = closedUntil
  }
}
