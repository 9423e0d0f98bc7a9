import t, { type Test } from 'tap'
import type { Budget, BudgetOptions, BudgetState, Lease, Purpose } from '../../src/provider/budget.ts'
import { freeLimits } from '../../src/provider/open-meteo/limits.ts'
import { dayEndAfter } from '../../src/provider/spending-windows.ts'
import { openEmbeddedStore } from '../../src/stores/embedded.ts'
import { manualClock } from '../support/manual-clock.ts'
import { budgetOn, troubled } from './budget-set-up.ts'

const start = Date.parse('2026-11-21T06:10:30Z')

const setUp = (t: Test, options: Partial<BudgetOptions> = {}) => {
  const clock = manualClock(start)
  const embedded = openEmbeddedStore(':memory:', clock)
  t.teardown(() => embedded.close())
  const { store, state } = troubled(embedded)
  return { ...budgetOn(store, clock, options), clock, store, state, healthy: embedded }
}
const spend = async (budget: Budget, points: number, purpose: Purpose): Promise<number> => {
  const lease = await budget.take(points, purpose)
  await lease.done('answered')
  return lease.points
}
const usedIn = ({ windows }: BudgetState) => windows.map(({ used }) => used)

t.test('points are granted while they fit, and the rest is told when to come back', async t => {
  const { budget, clock } = setUp(t)
  const first = await budget.take(150, 'cold')
  t.match(first, { points: 150, retryAt: null })
  const second = await budget.take(80, 'cold')
  const nextMinute = Date.parse('2026-11-21T06:11:02Z')
  t.match(second, { points: 50, retryAt: nextMinute }, 'two seconds after the minute of the provider is over')
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: nextMinute })
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
  await first.done('answered')
  await second.done('answered')
  clock.set(nextMinute - 1)
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: nextMinute })
  clock.set(nextMinute)
  t.match(await budget.take(1, 'cold'), { points: 1, retryAt: null })
  t.match(await budget.take(0, 'cold'), { points: 0, retryAt: null })
})

t.test('where more than one window is full, the last of them to turn says when', async t => {
  const { budget } = setUp(t, { limits: { minute: 600, hour: 600, day: 10_000 } })
  t.match(await budget.take(300, 'cold'), { points: 200, retryAt: Date.parse('2026-11-21T07:00:02Z') })
})

t.test('a refresh leaves the reserve of every window to cold cells', async t => {
  const { budget, clock } = setUp(t)
  t.equal(await spend(budget, 999, 'refresh'), 180)
  t.equal(await spend(budget, 1, 'refresh'), 0)
  t.equal(await spend(budget, 999, 'cold'), 20)
  for (let minute = 1; minute < 10; minute++) {
    clock.advance(60_000)
    await spend(budget, 200, 'refresh')
  }
  clock.advance(60_000)
  const hour = await budget.take(200, 'refresh')
  t.match(
    hour,
    { points: 0, retryAt: Date.parse('2026-11-21T07:00:02Z') },
    'as much of the hour as is not kept',
  )
  t.equal((await budget.take(20, 'cold')).points, 20)
})

t.test('near a turn both sides are charged, and a request that ends later is charged there too', async t => {
  const { budget, clock } = setUp(t)
  clock.set('2026-11-21T06:10:58.500Z')
  t.equal(await spend(budget, 999, 'cold'), 200)
  clock.set('2026-11-21T06:11:05Z')
  t.equal((await budget.take(1, 'cold')).points, 0, 'the minute may have begun for the provider')
  clock.set('2026-11-21T06:12:30Z')
  const late = await budget.take(150, 'cold')
  clock.set('2026-11-21T06:13:05Z')
  await late.done('answered')
  t.strictSame(usedIn(budget.state()), [450, 1_050, 1_050])
  t.equal((await budget.take(999, 'cold')).points, 50)
})

t.test('a request that is still out when a minute begins is charged there before others are', async t => {
  const { budget, clock } = setUp(t)
  const out = await budget.take(150, 'cold')
  clock.set('2026-11-21T06:11:20Z')
  t.equal((await budget.take(999, 'cold')).points, 50)
  await out.done('failed')
  t.strictSame(usedIn(budget.state()), [151, 151, 151], 'a failure costs 1 in all of them')
})

t.test('another gateway sees what is still out when a minute begins', async t => {
  const { budget, clock, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  const out = await budget.take(150, 'cold')
  clock.set('2026-11-21T06:11:20Z')
  t.equal((await other.take(999, 'cold')).points, 50)
  await out.done('unsent')
  t.equal((await other.take(999, 'cold')).points, 150)
})

t.test('what ended in time is no burden on the next minute; what may have been counted late is', async t => {
  const { budget, clock, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  clock.set('2026-11-21T06:10:40Z')
  const [answered, timedOut] = [await budget.take(50, 'cold'), await budget.take(70, 'cold')]
  t.match(await budget.take(90, 'cold'), { points: 80, retryAt: Date.parse('2026-11-21T06:11:02Z') })
  await answered.done('answered')
  await timedOut.done('unknown')
  clock.set('2026-11-21T06:11:20Z')
  t.equal((await other.take(999, 'cold')).points, 50, '70 timed out and 80 are still out')
})

t.test('a grant holds for as long as the windows that it was charged to', async t => {
  const { budget, clock } = setUp(t)
  const lease = await budget.take(10, 'cold')
  t.equal(lease.isValid(), true)
  clock.set('2026-11-21T06:10:58Z')
  t.equal(lease.isValid(), true, 'until 06:11:30 at the latest, which was charged')
  clock.set('2026-11-21T06:11:28Z')
  t.equal(lease.isValid(), false, 'it may be counted in 06:12')
  clock.set('2026-11-21T06:09:59Z')
  t.equal(lease.isValid(), false, 'a clock that was put back by a minute')
  t.equal((await budget.take(0, 'cold')).isValid(), true)
})

t.test('who does not know how many share the account takes nothing while the store is away', async t => {
  let instances: number | undefined
  const { budget, clock, heard, state } = setUp(t, { instances: () => instances })
  t.equal(await spend(budget, 10, 'cold'), 10, 'with the store there is no need to know')
  state.trouble = 'before'
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: start + 1_000 })
  instances = 1
  t.equal((await budget.take(1, 'cold')).points, 0, 'nor what is learnt of the others afterwards')
  clock.advance(60_000)
  t.equal((await budget.take(1, 'cold')).points, 0)
  t.strictSame(heard, ['away'])
  state.trouble = null
  t.equal((await budget.take(1, 'cold')).points, 1)
  t.strictSame(heard, ['away', 'back'])
})

t.test('a store so slow that a minute begins meanwhile costs nobody a refusal', async t => {
  const { budget, clock, store, state } = setUp(t)
  clock.set('2026-11-21T06:10:57Z')
  state.delay = () => clock.set('2026-11-21T06:11:03Z')
  t.equal((await budget.take(150, 'cold')).points, 150)
  state.delay = () => {}
  const other = budgetOn(store, clock).budget
  t.equal((await other.take(999, 'cold')).points, 50)
})

t.test(
  'a request that was never told to have ended counts where it could have been, and not for ever',
  async t => {
    const { budget, clock } = setUp(t)
    const lost = await budget.take(150, 'cold')
    clock.advance(60_000)
    t.equal(await spend(budget, 999, 'cold'), 50)
    clock.advance(600_000)
    t.equal(await spend(budget, 999, 'cold'), 200)
    await lost.done('unsent')
    t.strictSame(usedIn(budget.state()), [600, 750, 750])
  },
)

t.test('what a request did not cost is given back, once', async t => {
  const { budget } = setUp(t)
  const leases: Lease[] = []
  for (let i = 0; i < 5; i++) leases.push(await budget.take(20, 'cold'))
  const used = async (outcome: 'answered' | 'failed' | 'limited' | 'unknown' | 'unsent') => {
    const lease = leases.pop()
    await lease?.done(outcome)
    await lease?.done('unsent')
    return usedIn(budget.state())
  }
  t.strictSame(await used('answered'), [300, 300, 300])
  t.strictSame(await used('unknown'), [300, 300, 300])
  t.strictSame(await used('failed'), [241, 241, 241])
  t.strictSame(await used('limited'), [181, 181, 181])
  t.strictSame(await used('unsent'), [121, 121, 121])
})

t.test('a weight with a fraction never crosses a limit', async t => {
  const { budget } = setUp(t, { unit: 3 * (15 / 14) })
  t.equal((await budget.take(999, 'cold')).points, Math.floor(600 / 3.215))
})

t.test('after a 429 nobody asks before its end, also not another gateway', async t => {
  const { budget, clock, store, state } = setUp(t)
  const other = budgetOn(store, clock).budget
  const lease = await budget.take(10, 'cold')
  const until = start + 100_000
  const told = budget.limited(until)
  t.equal(budget.closedUntil(), until, 'known here at once')
  await told
  await lease.done('limited')
  const steps = state.steps.length
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: until })
  t.equal(state.steps.length, steps, 'without asking the store')
  t.equal(other.closedUntil(), null)
  t.match(await other.take(1, 'cold'), { points: 0, retryAt: until })
  t.equal(other.closedUntil(), until)
  clock.set(until)
  t.equal(other.closedUntil(), null)
  t.match(await other.take(1, 'cold'), { points: 1, retryAt: null })
  t.match(budget.state(), { closedUntil: null, shared: true })
})

t.test('without limits everything is granted and the store is left alone', async t => {
  const { budget, clock, state } = setUp(t, { limits: { minute: null, hour: null, day: null } })
  state.trouble = 'before'
  const lease = await budget.take(1e6, 'refresh')
  t.match(lease, { points: 1e6, retryAt: null })
  await lease.done('answered')
  await budget.look()
  t.equal(budget.stretch(1e9), 1)
  t.strictSame(budget.state(), { windows: [], closedUntil: null, shared: true })
  await budget.limited(start + 1_000)
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: start + 1_000 }, 'but a 429 is a 429')
  clock.advance(1_000)
  t.match(await budget.take(1, 'cold'), { points: 1, retryAt: null })
  t.strictSame(state.steps, [])
})

t.test('while the store is away a gateway spends its share, and hands it in afterwards', async t => {
  const { budget, heard, clock, state, store } = setUp(t, { instances: () => 2 })
  t.equal(await spend(budget, 100, 'cold'), 100)
  state.trouble = 'before'
  t.equal(await spend(budget, 99, 'cold'), 0, 'the other may have taken what is left')
  clock.set('2026-11-21T06:12:05Z')
  t.equal(await spend(budget, 60, 'cold'), 60, 'half of a minute that nobody was granted before')
  const lease = await budget.take(999, 'cold')
  t.equal(lease.points, 40)
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: Date.parse('2026-11-21T06:13:02Z') })
  await lease.done('failed')
  t.match(budget.state(), { shared: false })
  t.strictSame(usedIn(budget.state()), [181, 481, 481])
  t.strictSame(heard, ['away'])

  state.trouble = null
  const other = budgetOn(store, clock).budget
  t.equal((await other.take(10, 'cold')).points, 10)
  t.equal((await budget.take(10, 'cold')).points, 10)
  t.strictSame(heard, ['away', 'back'])
  t.strictSame(usedIn(budget.state()), [241, 541, 541], 'what both spent')
  t.match(budget.state(), { shared: true })
  await other.look()
  t.strictSame(usedIn(other.state()), [241, 541, 541])
})

t.test('what others took since this gateway last looked is not spent a second time', async t => {
  const { clock, ...one } = setUp(t, { instances: () => 2 })
  // The same store, in good health: one gateway alone can lose it, by a single command that takes too long.
  const two = budgetOn(one.healthy, clock, { instances: () => 2 })
  await one.budget.look()
  t.equal(await spend(two.budget, 999, 'cold'), 200)
  one.state.trouble = 'before'
  t.match(await one.budget.take(999, 'cold'), { points: 0, retryAt: clock.now() + 1_000 })
  clock.set('2026-11-21T06:11:59Z')
  t.equal((await one.budget.take(999, 'cold')).points, 0, 'the other may have been granted this minute too')
  clock.set('2026-11-21T06:12:02Z')
  t.equal(
    (await one.budget.take(999, 'cold')).points,
    100,
    'a minute that nobody was granted before the loss',
  )
})

t.test(
  'of an hour and a day, without the store, what others may have taken unseen is left alone',
  async t => {
    const { budget, clock, state } = setUp(t, {
      instances: () => 2,
      limits: { minute: 600, hour: 2_400, day: 10_000 },
    })
    await budget.look()
    state.trouble = 'before'
    await budget.take(1, 'cold')
    let points = 0
    for (let minute = 12; minute < 40; minute++) {
      clock.set(Date.parse('2026-11-21T06:00:30Z') + minute * 60_000)
      points += (await budget.take(999, 'cold')).points
    }
    t.equal(points, 200, 'half of what two minutes leave of the hour')
    const {
      budget: other,
      clock: otherClock,
      state: otherState,
    } = setUp(t, {
      instances: () => 2,
      limits: { minute: null, hour: null, day: 600 },
    })
    await other.look()
    otherState.trouble = 'before'
    t.match(
      await other.take(1, 'cold'),
      { points: 0, retryAt: start + 1_000 },
      'the store may be back at once',
    )
    otherClock.advance(33_000)
    t.equal((await other.take(999, 'cold')).points, 100, 'half of what was left of the day')
  },
)

for (const turns of [1, 2, 3, 4, 5])
  t.test(
    `what is being handed in counts as spent until the store has it: looks ${turns} turns apart`,
    async t => {
      const { budget, clock, state } = setUp(t, { instances: () => 2 })
      await budget.look()
      state.trouble = 'before'
      await budget.take(1, 'cold')
      clock.advance(120_000)
      // So that looks and takes meet at every step of one another.
      const leases: Promise<Lease>[] = []
      for (let i = 0; i < 200; i++) {
        for (let turn = 0; turn < turns; turn++) await null
        void budget.look()
        leases.push(budget.take(1, 'cold'))
      }
      const granted = (await Promise.all(leases)).reduce((sum, { points }) => sum + points, 0)
      t.equal(granted, 100)
    },
  )

t.test('gateways that went out of sight with the store still count as sharers', async t => {
  let alive = 4
  const { budget, clock, state } = setUp(t, { instances: () => alive })
  await budget.look()
  state.trouble = 'before'
  await budget.take(1, 'cold')
  alive = 1
  clock.advance(120_000)
  t.equal((await budget.take(999, 'cold')).points, 50)
})

t.test('a store that acts and then loses its answer never makes the budget larger', async t => {
  const { budget, clock, state, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  const lease = await budget.take(100, 'cold')
  await spend(other, 90, 'cold')
  state.trouble = 'after'
  await lease.done('limited')
  clock.advance(120_000)
  t.equal(await spend(budget, 50, 'cold'), 50)
  await budget.look()
  state.trouble = null
  await budget.look()
  await other.look()
  const [minute = 0, ...longer] = usedIn(other.state())
  t.ok(minute >= 150, `${minute} for 50 points spent`)
  for (const used of longer) t.ok(used >= 420, `${used} for 140 points spent`)
})

t.test('a 429 that the store could not be told is told when it is back', async t => {
  const { budget, heard, clock, state, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  state.trouble = 'before'
  await budget.limited(start + 50_000)
  state.trouble = null
  t.match(await budget.take(1, 'cold'), { points: 0, retryAt: start + 50_000 })
  await budget.look()
  t.match(await other.take(1, 'cold'), { points: 0, retryAt: start + 50_000 })
  t.strictSame(heard, ['away', 'back'])
})

t.test('many that find the store away, and many that find it back, are one loss and one return', async t => {
  const { budget, clock, heard, state } = setUp(t)
  const takeMany = async () => {
    const leases = await Promise.all(Array.from({ length: 20 }, () => budget.take(5, 'cold')))
    return leases.reduce((sum, { points }) => sum + points, 0)
  }
  await budget.look()
  state.trouble = 'before'
  t.equal(await takeMany(), 0)
  clock.advance(120_000)
  t.equal(await takeMany(), 100)
  state.trouble = null
  t.equal(await takeMany(), 100)
  t.equal(await takeMany(), 0)
  t.strictSame(heard, ['away', 'back'])
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
})

t.test('freshness stretches by what was seen of the day, and begins anew with it', async t => {
  const { budget, clock } = setUp(t, { limits: { ...freeLimits, minute: null, hour: null } })
  const dayShare = (dayEndAfter(start) - start) / 86_400_000
  t.equal(budget.stretch(1_000), 1)
  t.equal(budget.stretch(36_000).toFixed(6), (4 * dayShare).toFixed(6))
  await budget.take(1_500, 'refresh')
  t.equal(budget.stretch(36_000).toFixed(6), (8 * dayShare).toFixed(6))
  await budget.take(9_999, 'refresh')
  t.equal(budget.stretch(36_000), Number.POSITIVE_INFINITY)
  clock.set(dayEndAfter(start))
  t.equal(budget.stretch(36_000), 4)
})
