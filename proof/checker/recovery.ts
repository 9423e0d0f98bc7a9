// Promise 13: when all faults have ended and the promised time has passed, every gateway is ready, answers every request, and its
// weather is fresh. Without room in the day's budget weather stays stale, as promised.

import { day, type Facts, last, minute, ttlOf } from './facts.ts'
import type { Rule } from './rule.ts'

// Beyond it freshness stretches, and what is kept aside is not for refreshes.
const plentyOfBudget = 0.5

export const recovered: Rule = (facts, report) => {
  const final = facts.answers.filter(({ sent, key }) => sent.seq > facts.judgedFrom && key === 'plenty')
  if (final.length === 0) return
  report.saw()
  const hasBudget = hasPlenty(facts)
  for (const answer of final) {
    if (answer.status === 500 && !hasBudget) continue
    if (answer.status !== 200) report.broken(answer, answer.failure ?? answer.body)
    const cached = answer.headers['cache-status']
    // Fresh is also what became stale since everything was requested last, a minute before, and is loaded because of this request.
    const isFresh = ttlOf(answer) > -minute
    if (cached !== undefined && hasBudget && !isFresh)
      report.broken(answer, `its weather is stale, ${cached}`)
  }
  for (const event of facts.of('ready'))
    if (event.status !== 200 || !event.body.includes('counted in the store'))
      report.broken(event, `gateway ${event.gateway} is not ready: ${event.status} ${event.body}`)
}

const hasPlenty = (facts: Facts): boolean => {
  const end = facts.events.at(-1)
  const limit = facts.settingsAt(last)['provider.budget.perDay']
  if (!end || !limit) return true
  const begin = Math.floor(end.at / day) * day
  const spent = facts.said.filter(({ at }) => at >= begin).reduce((sum, { weight }) => sum + weight, 0)
  return spent < Number(limit) * plentyOfBudget
}
