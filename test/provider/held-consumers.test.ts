// Without it one key that used up its share could delay or fail the cells of others.

import t, { type Test } from 'tap'
import type { ProviderOptions, ProviderParts } from '../../src/provider/client.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { Cell } from '../../src/weather/cell.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { budgetOn } from './budget-set-up.ts'
import { budgetFor, cellsFrom, codesOf, providerAt } from './provider-set-up.ts'

const simulator = await startProvider(t)
const now = Date.parse(noon)
const inAnHour = () => now + 3_600_000
const [one, two, three] = cellsFrom(22, 3) as [Cell, Cell, Cell]
const usedUp = 'key_share_used_up'

const setUp = (t: Test, options: Partial<ProviderOptions>, budget: ProviderParts['budget']) => {
  const due = new Set<() => unknown>()
  const clock = {
    ...manualClock(),
    // Nothing is tried again before the test says so.
    timers: {
      every: () => () => {},
      after: (_ms: number, work: () => unknown) => {
        due.add(work)
        return () => due.delete(work)
      },
    },
  }
  const wake = () => {
    for (const work of due) work()
  }
  t.teardown(() => simulator.steer({ fault: 'none', hold: false }))
  const recentConsumers = ['other', 'greedy']
  const set = providerAt(t, simulator.url, { options, clock, budget, recentConsumers })
  return { ...set, clock, wake }
}
/** A budget with so many points for each consumer; those of `other` never end. */
const sharesOf = (shares: Record<string, number>) =>
  budgetFor(({ consumer, points }) => {
    const left = consumer === 'other' ? points : Math.min(points, shares[consumer] ?? 0)
    shares[consumer] = (shares[consumer] ?? 0) - left
    return left
  }, inAnHour)

t.test('what a consumer wants refreshed does not wait until its share has room again', async t => {
  for (const maxPointsPerRequest of [1, 20]) {
    const { provider } = setUp(t, { maxPointsPerRequest }, sharesOf({ greedy: 2 }))
    const stale = cellsFrom(22, 8).map((cell, i) =>
      provider.load(cell, i % 2 ? 'refresh' : 'refresh_ahead', 'greedy'),
    )
    t.strictSame((await codesOf(stale)).toSorted(), [...Array(6).fill(usedUp), 'ok', 'ok'])
    t.equal(provider.waiting(), 0)
    t.match(provider.throttled('greedy', 'refresh'), { code: usedUp })
    t.equal(provider.throttled('other', 'refresh'), undefined)
  }
})

t.test('a retry fails for the one whose share is used up meanwhile, and for no other', async t => {
  const { provider, requests } = setUp(t, {}, sharesOf({ greedy: 1 }))
  await simulator.steer({ fault: 'internal-error', times: 1 })
  const loads = [
    provider.load(one, 'cold', 'greedy'),
    provider.load(two, 'cold', 'other'),
    provider.load(three, 'refresh', 'other'),
  ]
  t.strictSame(await codesOf(loads), [usedUp, 'ok', 'ok'])
  t.strictSame(requests, [
    ['provider_failing', 3],
    ['ok', 2],
  ])
})

t.test('cells that wait for one share do not delay those that need not wait', async t => {
  let throttledUntil = now + 10_000
  const budget = budgetFor(
    ({ consumer, points }) => (consumer === 'greedy' ? 0 : points),
    () => throttledUntil,
  )
  const { provider, clock, wake, requests } = setUp(t, { maxPointsPerRequest: 2 }, budget)
  const greedy = codesOf(cellsFrom(22, 2).map(cell => provider.load(cell, 'cold', 'greedy')))
  const others = cellsFrom(23, 6).map(cell => provider.load(cell, 'cold', 'other'))
  t.strictSame(await codesOf(others), Array(6).fill('ok'), 'without a timer')
  t.equal(requests.length, 6)
  clock.advance(20_000)
  throttledUntil = inAnHour()
  wake()
  t.strictSame(await greedy, Array(2).fill(usedUp))
})

t.test('cells that wait for a share are not attempted until it is due', async t => {
  let attempts = 0
  const { reserve } = budgetFor(
    () => 0,
    () => now + 10_000,
  )
  const budget: ProviderParts['budget'] = {
    reserve: (...given) => {
      attempts += 1
      return reserve(...given)
    },
  }
  const { provider } = setUp(t, { maxPointsPerRequest: 2 }, budget)
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
  }
  // The second ones find the consumer held back already.
  for (const latitude of [22, 23]) {
    for (const cell of cellsFrom(latitude, 3)) provider.load(cell, 'cold', 'greedy').catch(() => {})
    await turns(20)
  }
  const before = attempts
  await turns(50)
  t.equal(attempts, before)
  t.equal(provider.waiting(), 6)
})

t.test('a consumer that may not refresh may load new cells from the reserve', async t => {
  const store = openEmbeddedStore(':memory:', manualClock())
  t.teardown(() => store.close())
  const limits = { minute: null, hour: null, day: 1_200 }
  const { budget } = budgetOn(store, manualClock(), { limits })
  const { provider } = setUp(t, {}, budget)
  // Of 1,080 that refreshes may spend.
  await budget.reserve(1_071 / 3, 'cold')
  await provider.load(one, 'cold', 'small')
  t.equal(budget.state().windows[0]?.used, 1_074)
  t.strictSame(await codesOf([provider.load(one, 'refresh', 'small')]), [usedUp])
  t.equal(provider.throttled('small', 'cold'), undefined)
  t.ok(provider.throttled('small', 'refresh'))
  t.strictSame(await codesOf([provider.load(two, 'cold', 'small')]), ['ok'])
})

for (const ends of ['a changed budget', 'a clock that is set back'])
  t.test(`${ends} ends for whom a consumer is held back`, async t => {
    let points = 0
    const { provider, clock } = setUp(
      t,
      {},
      budgetFor(() => points, inAnHour),
    )
    t.strictSame(await codesOf([provider.load(one, 'cold', 'greedy')]), [usedUp])
    t.ok(provider.throttled('greedy', 'cold'))
    points = 10
    if (ends === 'a changed budget') provider.budgetChanged()
    else clock.advance(-6 * 3_600_000)
    t.equal(provider.throttled('greedy', 'cold'), undefined)
    if (ends === 'a changed budget')
      t.strictSame(await codesOf([provider.load(one, 'cold', 'greedy')]), ['ok'])
  })
