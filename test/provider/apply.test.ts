// New options for the budget, while it is at work.

import t, { type Test } from 'tap'
import type { BudgetSettings } from '../../src/provider/budget.ts'
import { freeLimits } from '../../src/provider/open-meteo/limits.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { budgetOn } from './budget-set-up.ts'

const settings: BudgetSettings = {
  provider: 'acc1',
  limits: freeLimits,
  reserve: 0.1,
  consumerShare: 0.25,
  outageShare: null,
  longestRequestMs: 30_000,
}
const none = { minute: null, hour: null, day: null }

const startBudget = (t: Test, options: Partial<BudgetSettings> = {}) => {
  const clock = manualClock('2026-11-21T06:10:30Z')
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  return { clock, store, ...budgetOn(store, clock, { ...settings, ...options }) }
}
const used = ({ windows }: { windows: readonly { used: number }[] }) => windows.map(each => each.used)

t.test('higher limits hold for the next grant, and what was spent stays spent', async t => {
  const { budget } = startBudget(t)
  t.equal((await budget.reserve(999, 'cold')).points, 200)
  budget.apply({ ...settings, limits: { ...freeLimits, minute: 900 } })
  t.equal((await budget.reserve(999, 'cold')).points, 100)
  t.strictSame(used(budget.state()), [900, 900, 900])
  budget.apply({ ...settings, limits: none })
  t.equal((await budget.reserve(999, 'cold')).points, 999)
  budget.apply(settings)
  t.equal((await budget.reserve(1, 'cold')).points, 0, 'and the former limit is reached')
})

t.test('another reserve holds for the next grant', async t => {
  const { budget } = startBudget(t)
  t.equal((await budget.reserve(999, 'refresh')).points, 180)
  budget.apply({ ...settings, reserve: 0 })
  t.equal((await budget.reserve(999, 'refresh')).points, 20)
})

t.test('a larger day ends the stretch, which otherwise never falls within a day', async t => {
  const { budget } = startBudget(t, { limits: { ...none, day: 1_000 } })
  const stretch = () => budget.stretch(10_000)
  const before = stretch()
  t.ok(before > 5, `${before}`)
  budget.apply({ ...settings, limits: { ...none, day: 100_000 } })
  t.equal(stretch(), 1)
})

t.test('a longer timeout charges the windows that a request may then end in', async t => {
  const { budget } = startBudget(t, { longestRequestMs: 1_000 })
  await budget.reserve(1, 'cold')
  const windowsOf = async () => (await budget.reserve(1, 'cold')).isValid()
  t.ok(await windowsOf())
  const granted = await budget.reserve(1, 'cold')
  budget.apply({ ...settings, longestRequestMs: 60_000 })
  t.notOk(granted.isValid(), 'a grant of before does not cover the next minute')
  t.ok(await windowsOf())
})

t.test('a raised limit lifts what it held back, and a lowered one lifts nothing', async t => {
  const { budget, clock } = startBudget(t)
  const refusedAt = clock.now()
  t.notOk(budget.isLifted(refusedAt))
  budget.apply({ ...settings, limits: { ...none, day: 300 } })
  clock.advance(1_000)
  const limitedAt = clock.now()
  budget.apply({ ...settings, limits: { ...none, day: 200 } })
  t.notOk(budget.isLifted(limitedAt + 60_000))
  budget.apply({ ...settings, limits: { ...none, day: 400 } })
  t.ok(budget.isLifted(limitedAt))
})
