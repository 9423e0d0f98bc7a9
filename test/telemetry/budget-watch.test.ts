// Without it a closed budget could have no log line, or one for each second.

import t from 'tap'
import type { BudgetState } from '../../src/provider/budget.ts'
import { watchBudget } from '../../src/telemetry/budget-watch.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { manualClock } from '../support/manual-clock.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'

const setUp = (t: Teardown) => {
  const clock = manualClock()
  const lines: Record<string, unknown>[] = []
  const log = createLog('info', { write: line => void lines.push(JSON.parse(line)) })
  const closure = { until: 0, reason: null as string | null }
  const state = (): BudgetState => {
    const isClosed = closure.until > clock.now()
    return {
      windows: [],
      closedUntil: isClosed ? closure.until : null,
      closedBecause: isClosed ? closure.reason : null,
      shared: true,
    }
  }
  const watch = watchBudget(state, clock.now, log)
  t.teardown(watch.close)
  const said = (msg: RegExp) => lines.filter(line => msg.test(String(line.msg)))
  return { clock, closure, lines, said }
}

t.test('a closure has one line with its reason and the next step, and one when it has run out', async t => {
  const { clock, closure, lines, said } = setUp(t)
  Object.assign(closure, { until: clock.now() + 17 * 3_600_000, reason: 'the provider answered 429: Daily' })
  await until('it is told', async () => said(/^budget closed/).length > 0)
  t.match(said(/^budget closed/), [
    {
      level: 'error',
      closedUntil: new Date(closure.until).toISOString(),
      reason: 'the provider answered 429: Daily',
      next: /^abohawa budget reopen .*docs\/runbook\.md#abohawaproviderlimits$/,
    },
  ])
  clock.set(closure.until)
  await until('its end is told', async () => said(/^budget open again$/).length > 0)
  t.equal(lines.length, 2)

  closure.until = clock.now() + 60_000
  await until('the next one is told', async () => said(/^budget closed/).length > 1)
  t.hasStrict(said(/^budget closed/)[1], { level: 'warn' }, 'of a minute, and less loud')
  // Ended by an operator, which has its own line.
  closure.until = 0
  await until('another one is told', async () => {
    closure.until = clock.now() + 3 * 3_600_000
    return said(/^budget closed/).length > 2
  })
  t.equal(said(/^budget open again$/).length, 1)
})
