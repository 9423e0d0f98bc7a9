// The budget for provider requests: windows, the reserve for cold cells, settling, 429s, and outages of the store.

import t, { type Test } from 'tap'
import type { Budget, BudgetOptions, BudgetState, Purpose, Reservation } from '../../src/provider/budget.ts'
import { freeLimits } from '../../src/provider/open-meteo/limits.ts'
import { dayEndAfter } from '../../src/provider/spending-windows.ts'
import { openEmbeddedStore } from '../../src/stores/embedded.ts'
import { manualClock } from '../support/manual-clock.ts'
import { budgetOn, faultyStore } from './budget-set-up.ts'

const start = Date.parse('2026-11-21T06:10:30Z')

const setUp = (t: Test, options: Partial<BudgetOptions> = {}) => {
  const clock = manualClock(start)
  const embedded = openEmbeddedStore(':memory:', clock)
  t.teardown(() => embedded.close())
  const { store, state } = faultyStore(embedded)
  return { ...budgetOn(store, clock, options), clock, store, state, healthy: embedded }
}
const spend = async (budget: Budget, points: number, purpose: Purpose): Promise<number> => {
  const reservation = await budget.reserve(points, purpose)
  await reservation.settle('answered')
  return reservation.points
}
const usedIn = ({ windows }: BudgetState) => windows.map(({ used }) => used)

t.test('reserves points while they fit, and retryAt is the next window', async t => {
  const { budget, clock } = setUp(t)
  const first = await budget.reserve(150, 'cold')
  t.match(first, { points: 150, retryAt: null })
  const second = await budget.reserve(80, 'cold')
  const nextMinute = Date.parse('2026-11-21T06:11:02Z')
  t.match(second, { points: 50, retryAt: nextMinute }, 'two seconds after the minute of the provider is over')
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: nextMinute })
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
  await first.settle('answered')
  await second.settle('answered')
  clock.set(nextMinute - 1)
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: nextMinute })
  clock.set(nextMinute)
  t.match(await budget.reserve(1, 'cold'), { points: 1, retryAt: null })
  t.match(await budget.reserve(0, 'cold'), { points: 0, retryAt: null })
})

t.test('retryAt is the end of the last full window', async t => {
  const { budget } = setUp(t, { limits: { minute: 600, hour: 600, day: 10_000 } })
  t.match(await budget.reserve(300, 'cold'), { points: 200, retryAt: Date.parse('2026-11-21T07:00:02Z') })
})

t.test('only cold cells may use the reserve of each window', async t => {
  const { budget, clock } = setUp(t)
  t.equal(await spend(budget, 999, 'refresh'), 180)
  t.equal(await spend(budget, 1, 'refresh'), 0)
  t.equal(await spend(budget, 999, 'cold'), 20)
  for (let minute = 1; minute < 10; minute++) {
    clock.advance(60_000)
    await spend(budget, 200, 'refresh')
  }
  clock.advance(60_000)
  const hour = await budget.reserve(200, 'refresh')
  t.match(
    hour,
    { points: 0, retryAt: Date.parse('2026-11-21T07:00:02Z') },
    'the hour without its reserve is spent',
  )
  t.equal((await budget.reserve(20, 'cold')).points, 20)
})

t.test('near a boundary both windows are charged, and so is the window in which a request ends', async t => {
  const { budget, clock } = setUp(t)
  clock.set('2026-11-21T06:10:58.500Z')
  t.equal(await spend(budget, 999, 'cold'), 200)
  clock.set('2026-11-21T06:11:05Z')
  t.equal((await budget.reserve(1, 'cold')).points, 0, 'the minute may have begun for the provider')
  clock.set('2026-11-21T06:12:30Z')
  const late = await budget.reserve(150, 'cold')
  clock.set('2026-11-21T06:13:05Z')
  await late.settle('answered')
  t.strictSame(usedIn(budget.state()), [450, 1_050, 1_050])
  t.equal((await budget.reserve(999, 'cold')).points, 50)
})

t.test('a request in flight when a minute begins is charged there first', async t => {
  const { budget, clock } = setUp(t)
  const out = await budget.reserve(150, 'cold')
  clock.set('2026-11-21T06:11:20Z')
  t.equal((await budget.reserve(999, 'cold')).points, 50)
  await out.settle('failed')
  t.strictSame(usedIn(budget.state()), [151, 151, 151], 'a failure costs 1 in all of them')
})

t.test('another gateway sees what is in flight when a minute begins', async t => {
  const { budget, clock, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  const out = await budget.reserve(150, 'cold')
  clock.set('2026-11-21T06:11:20Z')
  t.equal((await other.reserve(999, 'cold')).points, 50)
  await out.settle('unsent')
  t.equal((await other.reserve(999, 'cold')).points, 150)
})

t.test(
  'a request that ended in time is not charged to the next minute; one that may be counted late is',
  async t => {
    const { budget, clock, store } = setUp(t)
    const other = budgetOn(store, clock).budget
    clock.set('2026-11-21T06:10:40Z')
    const [answered, timedOut] = [await budget.reserve(50, 'cold'), await budget.reserve(70, 'cold')]
    t.match(await budget.reserve(90, 'cold'), { points: 80, retryAt: Date.parse('2026-11-21T06:11:02Z') })
    await answered.settle('answered')
    await timedOut.settle('unknown')
    clock.set('2026-11-21T06:11:20Z')
    t.equal((await other.reserve(999, 'cold')).points, 50, '70 timed out and 80 are in flight')
  },
)

t.test('a reservation is valid as long as the windows that it was charged to', async t => {
  const { budget, clock } = setUp(t)
  const reservation = await budget.reserve(10, 'cold')
  t.equal(reservation.isValid(), true)
  clock.set('2026-11-21T06:10:58Z')
  t.equal(reservation.isValid(), true, 'until 06:11:30 at the latest, which was charged')
  clock.set('2026-11-21T06:11:28Z')
  t.equal(reservation.isValid(), false, 'it may be counted in 06:12')
  clock.set('2026-11-21T06:09:59Z')
  t.equal(reservation.isValid(), false, 'a clock that was put back by a minute')
  t.equal((await budget.reserve(0, 'cold')).isValid(), true)
})

t.test('without the number of sharers nothing is granted while the store is away', async t => {
  let instances: number | undefined
  const { budget, clock, events, state } = setUp(t, { instances: () => instances })
  t.equal(await spend(budget, 10, 'cold'), 10, 'with the store there is no need to know')
  state.fault = 'before'
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: start + 1_000 })
  instances = 1
  t.equal((await budget.reserve(1, 'cold')).points, 0, 'nor what is learnt of the others afterwards')
  clock.advance(60_000)
  t.equal((await budget.reserve(1, 'cold')).points, 0)
  t.strictSame(events, ['away'])
  state.fault = null
  t.equal((await budget.reserve(1, 'cold')).points, 1)
  t.strictSame(events, ['away', 'back'])
})

t.test('a store so slow that a minute begins meanwhile causes no refusal', async t => {
  const { budget, clock, store, state } = setUp(t)
  clock.set('2026-11-21T06:10:57Z')
  state.delay = () => clock.set('2026-11-21T06:11:03Z')
  t.equal((await budget.reserve(150, 'cold')).points, 150)
  state.delay = () => {}
  const other = budgetOn(store, clock).budget
  t.equal((await other.reserve(999, 'cold')).points, 50)
})

t.test('a request that is never settled counts where it could have been, and not for ever', async t => {
  const { budget, clock } = setUp(t)
  const lost = await budget.reserve(150, 'cold')
  clock.advance(60_000)
  t.equal(await spend(budget, 999, 'cold'), 50)
  clock.advance(600_000)
  t.equal(await spend(budget, 999, 'cold'), 200)
  await lost.settle('unsent')
  t.strictSame(usedIn(budget.state()), [600, 750, 750])
})

t.test('settling returns the unused weight of a request, once', async t => {
  const { budget } = setUp(t)
  const reservations: Reservation[] = []
  for (let i = 0; i < 5; i++) reservations.push(await budget.reserve(20, 'cold'))
  const used = async (outcome: 'answered' | 'failed' | 'limited' | 'unknown' | 'unsent') => {
    const reservation = reservations.pop()
    await reservation?.settle(outcome)
    await reservation?.settle('unsent')
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
  t.equal((await budget.reserve(999, 'cold')).points, Math.floor(600 / 3.215))
})

t.test('after a 429 no gateway sends a request before its end', async t => {
  const { budget, clock, store, state } = setUp(t)
  const other = budgetOn(store, clock).budget
  const reservation = await budget.reserve(10, 'cold')
  const until = start + 100_000
  const limited = budget.limited(until, 'daily')
  t.equal(budget.closedUntil(), until, 'known here at once')
  await limited
  await reservation.settle('limited')
  const steps = state.steps.length
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: until })
  t.equal(state.steps.length, steps, 'without a request to the store')
  t.equal(other.closedUntil(), null)
  t.match(await other.reserve(1, 'cold'), { points: 0, retryAt: until })
  t.equal(other.closedUntil(), until)
  clock.set(until)
  t.equal(other.closedUntil(), null)
  t.match(await other.reserve(1, 'cold'), { points: 1, retryAt: null })
  t.match(budget.state(), { closedUntil: null, shared: true })
})

t.test('without limits everything is granted, and the store has nothing but a closure', async t => {
  const { budget, clock, state, store, events } = setUp(t, {
    limits: { minute: null, hour: null, day: null },
  })
  state.fault = 'before'
  const reservation = await budget.reserve(1e6, 'refresh')
  t.match(reservation, { points: 1e6, retryAt: null })
  await reservation.settle('answered')
  await budget.reconcile()
  t.equal(budget.stretch(1e9), 1)
  t.strictSame(budget.state(), { windows: [], closedUntil: null, closedBecause: null, shared: true })
  t.strictSame(state.steps, [])
  await budget.limited(start + 1_000, 'daily')
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: start + 1_000 }, 'but a 429 is a 429')
  clock.advance(1_000)
  t.match(await budget.reserve(1, 'cold'), { points: 1, retryAt: null })
  t.strictSame(state.steps, ['closeUntil'])

  state.fault = null
  await budget.reconcile()
  await budget.limited(start + 90_000, 'daily')
  t.equal((await store.closure('acc1')).closedUntil, start + 90_000)
  await store.reopen('acc1', clock.now())
  await budget.reconcile()
  t.equal(budget.closedUntil(), null)
  t.strictSame(events, ['away', 'back', `reopened ${start + 90_000}`])
  const steps = state.steps.length
  await budget.reconcile()
  t.match(await budget.reserve(1, 'cold'), { points: 1, retryAt: null })
  t.equal(state.steps.length, steps, 'and open again it leaves the store alone')
})

t.test('an operator’s reopening reaches every gateway with its next reply of the store', async t => {
  const { budget, events, clock, store } = setUp(t)
  const other = budgetOn(store, clock)
  await Promise.all([budget.reconcile(), other.budget.reconcile()])
  const until = start + 100_000
  await budget.limited(until, 'Daily API request limit exceeded.')
  await other.budget.reconcile()
  const refusedAt = clock.now()
  clock.advance(1_000)
  t.match(await store.reopen('acc1', clock.now()), {
    closedUntil: until,
    reason: 'Daily API request limit exceeded.',
  })
  t.equal(budget.closedUntil(), until, 'not before it has read the store')
  t.notOk(budget.isLifted(refusedAt))
  for (const each of [{ budget, events }, other]) {
    await each.budget.reconcile()
    t.equal(each.budget.closedUntil(), null)
    t.ok(each.budget.isLifted(refusedAt), 'what was refused before may be tried again')
    t.match(await each.budget.reserve(1, 'cold'), { points: 1, retryAt: null })
    await each.budget.reconcile()
    t.strictSame(each.events, [`reopened ${until}`], 'once')
  }
  t.ok(budget.isLifted(clock.now() + 5_000), 'and a late answer to what was under way')
  t.notOk(budget.isLifted(clock.now() + 60_000), 'but nothing of later')

  await other.budget.limited(until, 'again')
  await budget.reconcile()
  t.equal(budget.closedUntil(), until, 'the next 429 closes it again')
  for (const each of [budget, other.budget]) t.notOk(each.isLifted(refusedAt))
})

t.test('a gateway that starts after a reopening follows none', async t => {
  const { budget, events, clock, store } = setUp(t)
  await store.reopen('acc1', clock.now())
  await budget.reconcile()
  t.strictSame(events, [])
  await budget.limited(start + 9_000, 'daily')
  t.equal((await store.closure('acc1')).closedUntil, start + 9_000)
})

t.test('a 429 from before a reopening that this gateway has not seen closes nothing', async t => {
  const { budget, events, clock, store } = setUp(t)
  await budget.reconcile()
  await store.reopen('acc1', clock.now())
  const limitedAt = clock.now()
  await budget.limited(start + 100_000, 'daily')
  t.equal(budget.closedUntil(), null)
  t.ok(budget.isLifted(limitedAt))
  t.equal((await store.closure('acc1')).closedUntil, null)
  t.strictSame(events, [`reopened ${start + 100_000}`])
  await budget.limited(start + 100_000, 'daily')
  t.equal(budget.closedUntil(), start + 100_000, 'the next one does')
})

t.test('a 429 that waited for the store to be back does not undo a reopening meanwhile', async t => {
  const { budget, events, clock, state, healthy } = setUp(t)
  await budget.reconcile()
  state.fault = 'before'
  await budget.limited(start + 100_000, 'daily')
  await healthy.reopen('acc1', clock.now())
  state.fault = null
  clock.advance(1_000)
  await budget.reconcile()
  t.equal(budget.closedUntil(), null)
  t.equal((await healthy.closure('acc1')).closedUntil, null)
  t.strictSame(events, ['away', `reopened ${start + 100_000}`, 'back'])
})

t.test('a reply from before the reopening that arrives after it closes nothing', async t => {
  const { clock, store } = setUp(t)
  const gate = Promise.withResolvers<void>()
  let late = false
  const { budget } = budgetOn(
    {
      ...store,
      reserve: async reservation => {
        const reply = await store.reserve(reservation)
        if (late) await gate.promise
        return reply
      },
    },
    clock,
  )
  await budget.reconcile()
  await store.closeUntil('acc1', start + 100_000, { now: start, reopenedAt: 0, reason: 'daily' })
  late = true
  const overtaken = budget.reserve(1, 'cold')
  await store.reopen('acc1', clock.now())
  await budget.reconcile()
  gate.resolve()
  t.equal((await overtaken).points, 0)
  t.equal(budget.closedUntil(), null)
})

t.test('a store that has lost the reopening is believed again after a minute', async t => {
  const { clock, store } = setUp(t)
  let isLost = false
  const { budget } = budgetOn(
    {
      ...store,
      spending: async (...of) => {
        const found = await store.spending(...of)
        return isLost ? { ...found, reopenedAt: 0 } : found
      },
    },
    clock,
  )
  await budget.reconcile()
  await store.reopen('acc1', clock.now())
  await budget.reconcile()
  isLost = true
  await store.closeUntil('acc1', start + 200_000, { now: clock.now(), reopenedAt: null, reason: 'daily' })
  await budget.reconcile()
  t.equal(budget.closedUntil(), null, 'it may be a reply from before')
  clock.advance(61_000)
  await budget.reconcile()
  t.equal(budget.closedUntil(), start + 200_000)
})

t.test('while the store is away a gateway spends its local allowance, and flushes it afterwards', async t => {
  const { budget, events, clock, state, store } = setUp(t, { instances: () => 2 })
  t.equal(await spend(budget, 100, 'cold'), 100)
  state.fault = 'before'
  t.equal(await spend(budget, 99, 'cold'), 0, 'the other may have taken what is left')
  clock.set('2026-11-21T06:12:05Z')
  t.equal(await spend(budget, 60, 'cold'), 60, 'half of a minute that nobody was granted before')
  const reservation = await budget.reserve(999, 'cold')
  t.equal(reservation.points, 40)
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: Date.parse('2026-11-21T06:13:02Z') })
  await reservation.settle('failed')
  t.match(budget.state(), { shared: false })
  t.strictSame(usedIn(budget.state()), [181, 481, 481])
  t.strictSame(events, ['away'])

  state.fault = null
  const other = budgetOn(store, clock).budget
  t.equal((await other.reserve(10, 'cold')).points, 10)
  t.equal((await budget.reserve(10, 'cold')).points, 10)
  t.strictSame(events, ['away', 'back'])
  t.strictSame(usedIn(budget.state()), [241, 541, 541], 'what both spent')
  t.match(budget.state(), { shared: true })
  await other.reconcile()
  t.strictSame(usedIn(other.state()), [241, 541, 541])
})

t.test('weight that others spent since the last reconciliation is not spent again', async t => {
  const { clock, ...one } = setUp(t, { instances: () => 2 })
  // The same healthy store: a single command that takes too long can cut off one gateway alone.
  const two = budgetOn(one.healthy, clock, { instances: () => 2 })
  await one.budget.reconcile()
  t.equal(await spend(two.budget, 999, 'cold'), 200)
  one.state.fault = 'before'
  t.match(await one.budget.reserve(999, 'cold'), { points: 0, retryAt: clock.now() + 1_000 })
  clock.set('2026-11-21T06:11:59Z')
  t.equal(
    (await one.budget.reserve(999, 'cold')).points,
    0,
    'the other may have been granted this minute too',
  )
  clock.set('2026-11-21T06:12:02Z')
  t.equal(
    (await one.budget.reserve(999, 'cold')).points,
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
    await budget.reconcile()
    state.fault = 'before'
    await budget.reserve(1, 'cold')
    let points = 0
    for (let minute = 12; minute < 40; minute++) {
      clock.set(Date.parse('2026-11-21T06:00:30Z') + minute * 60_000)
      points += (await budget.reserve(999, 'cold')).points
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
    await other.reconcile()
    otherState.fault = 'before'
    t.match(
      await other.reserve(1, 'cold'),
      { points: 0, retryAt: start + 1_000 },
      'the store may be back at once',
    )
    otherClock.advance(33_000)
    t.equal((await other.reserve(999, 'cold')).points, 100, 'half of what was left of the day')
  },
)

for (const turns of [1, 2, 3, 4, 5])
  t.test(
    `pending changes count as spent until the store has them: reconciliations ${turns} turns apart`,
    async t => {
      const { budget, clock, state } = setUp(t, { instances: () => 2 })
      await budget.reconcile()
      state.fault = 'before'
      await budget.reserve(1, 'cold')
      clock.advance(120_000)
      // So that reads and reservations interleave at every step.
      const reservations: Promise<Reservation>[] = []
      for (let i = 0; i < 200; i++) {
        for (let turn = 0; turn < turns; turn++) await null
        void budget.reconcile()
        reservations.push(budget.reserve(1, 'cold'))
      }
      const granted = (await Promise.all(reservations)).reduce((sum, { points }) => sum + points, 0)
      t.equal(granted, 100)
    },
  )

t.test('gateways that went out of sight with the store still count as sharers', async t => {
  let alive = 4
  const { budget, clock, state } = setUp(t, { instances: () => alive })
  await budget.reconcile()
  state.fault = 'before'
  await budget.reserve(1, 'cold')
  alive = 1
  clock.advance(120_000)
  t.equal((await budget.reserve(999, 'cold')).points, 50)
})

t.test('a store that applies a change and loses its reply never makes the budget larger', async t => {
  const { budget, clock, state, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  const reservation = await budget.reserve(100, 'cold')
  await spend(other, 90, 'cold')
  state.fault = 'after'
  await reservation.settle('limited')
  clock.advance(120_000)
  t.equal(await spend(budget, 50, 'cold'), 50)
  await budget.reconcile()
  state.fault = null
  await budget.reconcile()
  await other.reconcile()
  const [minute = 0, ...longer] = usedIn(other.state())
  t.ok(minute >= 150, `${minute} for 50 points spent`)
  for (const used of longer) t.ok(used >= 420, `${used} for 140 points spent`)
})

t.test('a 429 that could not be written to the store is written when it is back', async t => {
  const { budget, events, clock, state, store } = setUp(t)
  const other = budgetOn(store, clock).budget
  state.fault = 'before'
  await budget.limited(start + 50_000, 'daily')
  state.fault = null
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: start + 50_000 })
  await budget.reconcile()
  t.match(await other.reserve(1, 'cold'), { points: 0, retryAt: start + 50_000 })
  t.strictSame(events, ['away', 'back'])
})

t.test('many failures of the store are one outage event, and many successes one recovery event', async t => {
  const { budget, clock, events, state } = setUp(t)
  const takeMany = async () => {
    const reservations = await Promise.all(Array.from({ length: 20 }, () => budget.reserve(5, 'cold')))
    return reservations.reduce((sum, { points }) => sum + points, 0)
  }
  await budget.reconcile()
  state.fault = 'before'
  t.equal(await takeMany(), 0)
  clock.advance(120_000)
  t.equal(await takeMany(), 100)
  state.fault = null
  t.equal(await takeMany(), 100)
  t.equal(await takeMany(), 0)
  t.strictSame(events, ['away', 'back'])
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
})

t.test('freshness stretches by the last known spending of the day, and restarts with the day', async t => {
  const { budget, clock } = setUp(t, { limits: { ...freeLimits, minute: null, hour: null } })
  const dayShare = (dayEndAfter(start) - start) / 86_400_000
  t.equal(budget.stretch(1_000), 1)
  t.equal(budget.stretch(36_000).toFixed(6), (4 * dayShare).toFixed(6))
  await budget.reserve(1_500, 'refresh')
  t.equal(budget.stretch(36_000).toFixed(6), (8 * dayShare).toFixed(6))
  await budget.reserve(9_999, 'refresh')
  t.equal(budget.stretch(36_000), Number.POSITIVE_INFINITY)
  clock.set(dayEndAfter(start))
  t.equal(budget.stretch(36_000), 4)
})
