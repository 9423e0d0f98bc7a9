// Without it gateways could spend more than the provider allows, or stay closed after an outage or a 429.

import fc from 'fast-check'
import t from 'tap'
import { hourMs, minuteMs, utcDayMs } from '../../src/common/calendar.ts'
import type { Budget } from '../../src/provider/budget.ts'
import type { Purpose, Reservation } from '../../src/provider/charge.ts'
import { ProviderError, requestOutcomeOf } from '../../src/provider/errors.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { freeLimits } from '../../tools/provider/limits.ts'
import { closeIn, closureIn } from '../stores/spending.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { budgetOn, faultyStore, limit, openBudget, usedIn } from './budget-set-up.ts'

const start = Date.parse('2026-11-21T06:10:30Z')
const none = { minute: null, hour: null, day: null }

const spend = async (budget: Budget, points: number, purpose: Purpose): Promise<number> => {
  const reservation = await budget.reserve(points, purpose)
  await reservation.settle('answered')
  return reservation.points
}
const points = async (budget: Budget, wanted: number, purpose: Purpose = 'cold'): Promise<number> =>
  (await budget.reserve(wanted, purpose)).points

t.test('reserves points while they fit, and retryAt is the next window', async t => {
  const { budget, clock } = openBudget(t)
  t.strictSame(usedIn(budget.state()), [0, 0, 0])
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
  const full = openBudget(t, { limits: { minute: 600, hour: 600, day: 10_000 } })
  const lastFull = { points: 200, retryAt: Date.parse('2026-11-21T07:00:02Z') }
  t.match(await full.budget.reserve(300, 'cold'), lastFull, 'of several full windows the last')
  const nearly = openBudget(t, { limits: { minute: 600, hour: 603, day: 10_000 } }).budget
  t.match(
    await nearly.reserve(300, 'cold'),
    { points: 200, retryAt: nextMinute },
    'an hour with room for one',
  )
  const heavy = openBudget(t, { unit: 3 * (15 / 14) })
  const whole = Math.floor(600 / 3.215)
  t.equal(await points(heavy.budget, 999), whole, 'a weight with a fraction never crosses a limit')
})

t.test('a window that a request sent now may be counted in has to end, and a later one has not', async t => {
  for (const [now, end] of [
    ['2026-11-21T06:10:57.999Z', '2026-11-21T06:11:02Z'],
    ['2026-11-21T06:10:58Z', '2026-11-21T06:12:02Z'],
  ] as const) {
    const { budget } = openBudget(t, {}, now)
    await budget.reserve(200, 'cold')
    t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: Date.parse(end) }, now)
  }
})

t.test('room and state are those of the windows of now', async t => {
  const { budget, clock } = openBudget(t)
  await spend(budget, 199, 'cold')
  t.equal(budget.roomAt('cold'), null)
  await spend(budget, 1, 'cold')
  clock.set('2026-11-21T06:10:59.999Z')
  t.equal(budget.roomAt('cold'), Date.parse('2026-11-21T06:11:02Z'))
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
  clock.set('2026-11-21T06:11:00Z')
  t.equal(budget.roomAt('cold'), null)
  t.strictSame(usedIn(budget.state()), [0, 600, 600])
  await limit(budget, until, 'daily')
  t.equal(budget.roomAt('cold'), until)
})

t.test('only cold cells may use the reserve of each window', async t => {
  const { budget, clock } = openBudget(t)
  t.equal(await spend(budget, 999, 'refresh'), 180)
  t.equal(await spend(budget, 1, 'refresh'), 0)
  t.equal(await spend(budget, 999, 'cold'), 20)
  for (let minute = 1; minute < 10; minute++) {
    clock.advance(60_000)
    await spend(budget, 200, 'refresh')
  }
  clock.advance(60_000)
  const spent = { points: 0, retryAt: Date.parse('2026-11-21T07:00:02Z') }
  t.match(await budget.reserve(200, 'refresh'), spent, 'the hour without its reserve')
  t.equal(await points(budget, 20), 20)
})

t.test(
  'points that are of use only together are all granted or none, and take nothing meanwhile',
  async t => {
    const { budget, clock, store } = openBudget(t)
    const other = budgetOn(store, clock).budget
    const retryAt = Date.parse('2026-11-21T06:11:02Z')
    t.match(await budget.reserveWhole(181, 'refresh'), { points: 0, retryAt })
    t.equal(await spend(other, 1, 'refresh'), 1)
    t.match(await budget.reserveWhole(180, 'refresh'), { points: 0, retryAt })
    t.match(await budget.reserveWhole(179, 'refresh'), { points: 179, retryAt: null })
    t.strictSame(usedIn(budget.state()), [540, 540, 540])
  },
)

t.test('a request that may be counted late is charged to the next minute, an answered one not', async t => {
  const { budget, clock, store } = openBudget(t)
  const other = budgetOn(store, clock).budget
  clock.set('2026-11-21T06:10:40Z')
  const [answered, timedOut] = [await budget.reserve(50, 'cold'), await budget.reserve(70, 'cold')]
  t.match(await budget.reserve(90, 'cold'), { points: 80, retryAt: Date.parse('2026-11-21T06:11:02Z') })
  await answered.settle('answered')
  await timedOut.settle('unknown')
  clock.set('2026-11-21T06:11:20Z')
  t.equal(await points(other, 999), 50, '70 timed out and 80 are in flight')
})

t.test('a request that ends near the end of a minute counts in both', async t => {
  for (const [at, inNext] of [
    ['2026-11-21T06:10:57.999Z', 0],
    ['2026-11-21T06:10:58Z', 30],
    ['2026-11-21T06:11:01Z', 30],
  ] as const) {
    const { budget, clock } = openBudget(t, {}, '2026-11-21T06:10:40Z')
    const [answered, unsent] = [await budget.reserve(10, 'cold'), await budget.reserve(10, 'cold')]
    clock.set(at)
    await answered.settle('answered')
    await unsent.settle('unsent')
    t.equal(await points(budget, 200), 190, `the unsent one costs nothing at ${at}`)
    const next = openBudget(t, {}, '2026-11-21T06:10:40Z')
    const alone = await next.budget.reserve(10, 'cold')
    next.clock.set(at)
    await alone.settle('answered')
    next.clock.set('2026-11-21T06:11:20Z')
    t.equal(usedIn(next.budget.state())[0], inNext, at)
  }
  const { budget, state } = openBudget(t, {}, '2026-11-21T06:10:05Z')
  await (await budget.reserve(10, 'cold')).settle('answered')
  t.equal(state.steps.length, 1, 'one that cost what it was charged is not reported')
})

t.test('a reservation is valid as long as the windows that it was charged to', async t => {
  const { budget, clock } = openBudget(t)
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
  const { budget, clock, events, state } = openBudget(t, { instances: () => instances })
  t.equal(await spend(budget, 10, 'cold'), 10, 'with the store there is no need to know')
  state.fault = 'before'
  t.match(await budget.reserve(1, 'cold', [{ consumer: 'a', points: 1 }]), {
    ...{ points: 0, retryAt: start + 1_000 },
    claims: [{ points: 0, throttledUntil: null }],
  })
  t.equal(budget.roomAt('cold'), start + 1_000)
  instances = 1
  t.equal(await points(budget, 1), 0, 'nor what is learnt of the others afterwards')
  clock.advance(60_000)
  t.equal(await points(budget, 1), 0)
  t.strictSame(events, ['away'])
  state.fault = null
  t.equal(await points(budget, 1), 1)
  t.strictSame(events, ['away', 'back'])
})

t.test('a store so slow that a minute begins meanwhile causes no refusal', async t => {
  const { budget, clock, store, state } = openBudget(t)
  clock.set('2026-11-21T06:10:57Z')
  state.delay = () => clock.set('2026-11-21T06:11:03Z')
  t.equal(await points(budget, 150), 150)
  state.delay = () => {}
  const other = budgetOn(store, clock).budget
  t.equal(await points(other, 999), 50)
})

t.test('a request that is never settled counts where it could have been, and not for ever', async t => {
  const { budget, clock } = openBudget(t)
  const lost = await budget.reserve(150, 'cold')
  clock.advance(60_000)
  t.equal(await spend(budget, 999, 'cold'), 50)
  clock.advance(600_000)
  t.equal(await spend(budget, 999, 'cold'), 200)
  await lost.settle('unsent')
  t.strictSame(usedIn(budget.state()), [600, 750, 750])
})

t.test('a request of a process that stood still is charged to the window in which it ends', async t => {
  for (const end of ['2026-11-21T06:20:30Z', '2026-11-21T06:20:59Z', '2026-11-21T06:21:01Z']) {
    const { budget, clock } = openBudget(t)
    const late = await budget.reserve(10, 'cold')
    clock.set(end)
    await late.settle('answered')
    t.strictSame(usedIn(budget.state()), [30, 30, 30], end)
  }
})

t.test('the windows of a clock that was ahead take no part in later steps', async t => {
  const { clock, healthy } = openBudget(t)
  const names: string[][] = []
  const spendHere: SpendingStore['spend'] = spending => {
    names.push(spending.windows.map(({ name }) => name))
    return healthy.spend(spending)
  }
  const { budget } = budgetOn({ ...healthy, spend: spendHere }, clock)
  await spend(budget, 1, 'cold')
  const usual = names.at(-1)
  clock.advance(utcDayMs)
  await spend(budget, 1, 'cold')
  clock.set(start)
  await spend(budget, 1, 'cold')
  t.strictSame(names.at(-1), usual)
})

t.test('settling returns the unused weight of a request, once', async t => {
  const { budget } = openBudget(t)
  const reservations: Reservation[] = []
  for (let i = 0; i < 8; i++) reservations.push(await budget.reserve(20, 'cold'))
  const used = async (outcome: Parameters<Reservation['settle']>[0]) => {
    const reservation = reservations.pop()
    await reservation?.settle(outcome)
    await reservation?.settle('unsent')
    return usedIn(budget.state())
  }
  for (const [outcome, left] of [
    [requestOutcomeOf(new ProviderError('provider_timeout', 'sample')), 480],
    [requestOutcomeOf(new ProviderError('provider_cut_off', 'sample')), 480],
    [requestOutcomeOf(new TypeError('of our own')), 480],
    ['answered', 480],
    [requestOutcomeOf(new ProviderError('provider_failing', 'sample')), 421],
    [requestOutcomeOf(new ProviderError('provider_limited', 'sample')), 361],
    [requestOutcomeOf(new ProviderError('provider_busy', 'sample')), 301],
    ['unsent', 241],
  ] as const)
    t.strictSame(await used(outcome), [left, left, left], outcome)
})

/** Until when a store has a provider closed. */
const closedIn = async (store: SpendingStore, clock: ManualClock) =>
  (await closureIn(store, 'acc1', clock.now())).closedUntil
const until = start + 100_000

t.test('after a 429 no gateway sends a request before its end', async t => {
  const { budget, clock, store, state } = openBudget(t)
  const other = budgetOn(store, clock).budget
  const reservation = await budget.reserve(10, 'cold')
  const limited = reservation.limited(until, 'daily')
  t.equal(budget.closedUntil(), until, 'known here at once')
  await limited
  await reservation.settle('limited')
  const steps = state.steps.length
  t.match(await budget.reserve(0, 'cold', [{ consumer: 'a', points: 1 }]), {
    ...{ points: 0, retryAt: until },
    claims: [{ points: 0, throttledUntil: null }],
  })
  t.match(await budget.reserve(0, 'cold'), { retryAt: null }, 'who wants nothing lacks nothing')
  t.equal(state.steps.length, steps, 'without a request to the store')
  t.equal(other.closedUntil(), null)
  t.match(await other.reserve(1, 'cold'), { points: 0, retryAt: until })
  t.equal(other.closedUntil(), until)
  clock.set(until)
  t.equal(other.closedUntil(), null)
  t.match(await other.reserve(1, 'cold'), { points: 1, retryAt: null })
  t.match(budget.state(), { closedUntil: null, shared: true })
})

t.test('of two 429s the one that ends later closes, and of equal ones the first', async t => {
  const { budget } = openBudget(t)
  for (const [end, reason, because] of [
    [until, 'hourly', 'hourly'],
    [until, 'daily', 'hourly'],
    [until - 1, 'minutely', 'hourly'],
    [until + 1, 'daily', 'daily'],
  ] as const) {
    await limit(budget, end, reason)
    t.equal(budget.state().closedBecause, because)
  }
})

t.test('without limits everything is granted, and the store has nothing but a closure', async t => {
  const { budget, clock, state } = openBudget(t, { limits: none, instances: () => undefined })
  state.fault = 'before'
  const reservation = await budget.reserve(1e6, 'refresh')
  t.match(reservation, { points: 1e6, retryAt: null })
  const claimed = await budget.reserve(0, 'refresh', [{ consumer: 'a', points: 1e6 }])
  t.match(claimed, { retryAt: null, claims: [{ points: 1e6, throttledUntil: null }] })
  await reservation.settle('answered')
  await budget.reconcile()
  t.equal(budget.stretch(1e9), 1)
  t.strictSame(budget.state(), { windows: [], closedUntil: null, closedBecause: null, shared: true })
  t.strictSame(state.steps, [])
  await limit(budget, start + 1_000, 'daily')
  t.match(await budget.reserve(1, 'cold'), { points: 0, retryAt: start + 1_000 }, 'but a 429 is a 429')
  clock.advance(1_000)
  t.equal(await points(budget, 1), 1)
  t.strictSame(state.steps, ['spend'])
  t.equal(budget.roomAt('cold'), null, 'however many share it')
})

t.test('an operator’s reopening reaches every gateway with its next reply of the store', async t => {
  const { budget, events, clock, store } = openBudget(t)
  const other = budgetOn(store, clock)
  await Promise.all([budget.reconcile(), other.budget.reconcile()])
  await limit(budget, until, 'Daily API request limit exceeded.')
  await other.budget.reconcile()
  const refusedAt = clock.now()
  clock.advance(1_000)
  const closure = { until, reason: 'Daily API request limit exceeded.' }
  t.hasStrict(await store.reopen('acc1', clock.now()), { closure })
  t.equal(budget.closedUntil(), until, 'not before it has read the store')
  t.notOk(budget.isLifted(refusedAt))
  for (const each of [{ budget, events }, other]) {
    await each.budget.reconcile()
    t.equal(each.budget.closedUntil(), null)
    t.ok(each.budget.isLifted(refusedAt), 'what was refused before may be tried again')
    t.equal(await points(each.budget, 1), 1)
    await each.budget.reconcile()
    t.strictSame(each.events, [`reopened ${until}`], 'once')
  }
  t.ok(budget.isLifted(clock.now() + 32_000), 'and a late answer to what was under way')
  t.notOk(budget.isLifted(clock.now() + 32_001), 'but nothing of later')
  clock.advance(-hourMs)
  t.notOk(budget.isLifted(clock.now()), 'nor of a time that was set back')
  clock.advance(hourMs)
  await limit(other.budget, until, 'again')
  await budget.reconcile()
  t.equal(budget.closedUntil(), until, 'the next 429 closes it again')
  for (const each of [budget, other.budget]) t.notOk(each.isLifted(refusedAt))
})

t.test('a closure ends when the clock that it was made by is set back', async t => {
  const { budget, clock, store } = openBudget(t)
  await budget.reconcile()
  await limit(budget, until, 'daily')
  clock.advance(-30_000)
  await budget.reconcile()
  t.equal(budget.closedUntil(), until, 'a correction')
  clock.advance(-6 * hourMs)
  await budget.reconcile()
  t.equal(budget.closedUntil(), null)
  t.equal(await closedIn(store, clock), null)
  t.equal(await points(budget, 1), 1)
  await limit(budget, clock.now() + 60_000, 'again')
  await budget.reconcile()
  t.equal(budget.closedUntil(), clock.now() + 60_000, 'the next one closes it again')
})

t.test('a 429 from before an unseen reopening closes nothing, the next one does', async t => {
  for (const isStarting of [true, false]) {
    const { budget, events, clock, store } = openBudget(t)
    if (!isStarting) await budget.reconcile()
    await store.reopen('acc1', clock.now())
    // A gateway that starts after a reopening follows none.
    if (isStarting) await budget.reconcile()
    const limitedAt = clock.now()
    await limit(budget, until, 'daily')
    t.equal(await closedIn(store, clock), isStarting ? until : null)
    t.strictSame(events, isStarting ? [] : [`reopened ${until}`])
    t.equal(budget.isLifted(limitedAt), !isStarting)
    t.equal(budget.closedUntil(), isStarting ? until : null)
    await limit(budget, until, 'daily')
    t.equal(budget.closedUntil(), until)
  }
})

t.test('a 429 that waited for the store is written when it is back, unless it was reopened', async t => {
  for (const isReopened of [true, false]) {
    const { budget, events, clock, state, healthy } = openBudget(t)
    await budget.reconcile()
    state.fault = 'before'
    await limit(budget, until, 'daily')
    if (isReopened) await healthy.reopen('acc1', clock.now())
    state.fault = null
    clock.advance(1_000)
    await budget.reconcile()
    const expected = isReopened ? null : until
    t.strictSame([budget.closedUntil(), await closedIn(healthy, clock)], [expected, expected])
    t.strictSame(events, ['away', ...(isReopened ? [`reopened ${until}`] : []), 'back'])
  }
})

t.test('a reply from before the reopening that arrives after it closes nothing', async t => {
  const { clock, store } = openBudget(t)
  const gate = Promise.withResolvers<void>()
  let late = false
  const spendLate: SpendingStore['spend'] = async spending => {
    const reply = await store.spend(spending)
    if (late && spending.wanted > 0) await gate.promise
    return reply
  }
  const { budget } = budgetOn({ ...store, spend: spendLate }, clock)
  await budget.reconcile()
  await closeIn(store, 'acc1', { until, at: start, reason: 'daily' })
  late = true
  const overtaken = points(budget, 1)
  await store.reopen('acc1', clock.now())
  await budget.reconcile()
  gate.resolve()
  t.equal(await overtaken, 0)
  t.equal(budget.closedUntil(), null)
})

t.test('a store that has lost what it had gets it back from whoever knows it', async t => {
  const losing = () => {
    const { clock, healthy: before } = openBudget(t)
    const { healthy: after } = openBudget(t)
    let store = before
    const { budget } = budgetOn({ ...before, spend: spending => store.spend(spending) }, clock)
    const lose = () => {
      store = after
    }
    return { budget, before, after, clock, lose }
  }
  for (const granted of [0, 50]) {
    const { budget, after, clock, lose } = losing()
    await spend(budget, 150, 'cold')
    lose()
    if (granted > 0) t.equal(await points(budget, 999), granted, 'with the next reservation')
    else await budget.reconcile()
    const other = budgetOn(after, clock).budget
    await other.reconcile()
    t.strictSame(usedIn(other.state()), Array(3).fill(3 * (150 + granted)), 'a count')
  }
  for (const isReopened of [true, false]) {
    const { budget, before, after, clock, lose } = losing()
    await budget.reconcile()
    if (!isReopened) await limit(budget, until, 'daily')
    const { reopenedAt } = isReopened ? await before.reopen('acc1', clock.now()) : { reopenedAt: 0 }
    await budget.reconcile()
    lose()
    // A closure of which nobody knows whether it is from before.
    if (isReopened) await closeIn(after, 'acc1', { until, at: start, reason: 'daily' })
    await budget.reconcile()
    const closedUntil = isReopened ? null : until
    t.equal(budget.closedUntil(), closedUntil)
    t.match(await closureIn(after, 'acc1', clock.now()), { closedUntil, reopenedAt })
  }
})

t.test('a closure by a clock that was ahead holds for nobody whose clock is right', async t => {
  const { store, clock } = openBudget(t)
  const ahead = manualClock(start + 6 * hourMs)
  const [wrong, right] = [budgetOn(store, ahead).budget, budgetOn(store, clock).budget]
  await Promise.all([wrong.reconcile(), right.reconcile()])
  await limit(wrong, ahead.now() + 60_000, 'minutely')
  t.equal(wrong.closedUntil(), ahead.now() + 60_000)
  await right.reconcile()
  t.equal(right.closedUntil(), null)
  await limit(right, start + 30_000, 'minutely')
  // Set right, while the other one waits for an end by its own clock.
  ahead.set(start)
  await wrong.reconcile()
  t.equal(wrong.closedUntil(), start + 30_000, 'the closure of the other one alone is left')
  await right.reconcile()
  t.equal(await closedIn(store, clock), start + 30_000)
  for (const each of [ahead, clock]) each.set(start + 30_000)
  for (const budget of [wrong, right]) t.equal(await points(budget, 1), 1)
})

const fleet = { instances: () => 3, outageShare: 0.05 }

t.test('a fleet of three goes on at once without the store, and never passes a window', async t => {
  const { clock, healthy } = openBudget(t)
  const gateways = Array.from({ length: 3 }, () => {
    const { store, state } = faultyStore(healthy)
    return { ...budgetOn(store, clock, fleet), state }
  })
  const [one, two, three] = gateways as [(typeof gateways)[0], (typeof gateways)[0], (typeof gateways)[0]]
  t.equal(await spend(one.budget, 999, 'cold'), 190, 'a twentieth is set aside')
  t.match(one.budget.state().windows[0], { limit: 570, used: 570 })
  two.state.fault = three.state.fault = 'before'
  for (const { budget } of [two, three])
    t.equal(await spend(budget, 999, 'cold'), 3, 'a third of it each, at once')
  const retryAt = Date.parse('2026-11-21T06:11:02Z')
  t.match(await two.budget.reserve(1, 'cold'), { points: 0, retryAt })
  t.equal(two.budget.roomAt('cold'), retryAt, 'its part is spent')
  t.equal(await spend(one.budget, 1, 'cold'), 0)
  t.strictSame(two.events, ['away'])
  t.match(two.budget.state(), { shared: false })
  const failedAt = clock.now()
  t.notOk(two.budget.isLifted(failedAt))
  clock.set('2026-11-21T06:11:05Z')
  t.equal(two.budget.roomAt('cold'), null)
  t.equal(await spend(two.budget, 999, 'cold'), 3, 'in each window')
  t.equal(await spend(one.budget, 999, 'cold'), 190)

  two.state.fault = null
  await two.budget.reconcile()
  t.ok(two.budget.isLifted(failedAt), 'what was refused without the store is asked for again')
  t.ok(two.budget.isLifted(clock.now()))
  t.notOk(two.budget.isLifted(clock.now() + 1))
  t.strictSame(usedIn(two.budget.state()), [579, 1_158, 1_158], 'what it spent is reported')
  two.state.fault = 'before'
  t.equal(await spend(two.budget, 999, 'cold'), 0, 'a second outage in a minute has no second part')
  three.state.fault = null
  await three.budget.reconcile()
  t.strictSame(usedIn(three.budget.state()), [579, 1_167, 1_167])
})

t.test('without the store an hour that is full is tried again within a minute', async t => {
  const { budget, state } = openBudget(t, { ...fleet, limits: { ...none, hour: 600 } })
  t.equal(await spend(budget, 999, 'cold'), 190)
  state.fault = 'before'
  t.match(await budget.reserve(9, 'cold'), { points: 3, retryAt: start + 60_000 }, 'its part is left')
  t.equal(budget.roomAt('cold'), start + 60_000)
  await limit(budget, until, 'hourly')
  t.equal(budget.roomAt('cold'), Date.parse('2026-11-21T07:00:02Z'), 'unless the provider has closed it')
})

t.test('a part that was not used is there again, and a failure costs what the provider counts', async t => {
  const { budget, state } = openBudget(t, fleet)
  await budget.reconcile()
  state.fault = 'before'
  const claims = ['a', 'b'].map(consumer => ({ consumer, points: 2 }))
  const shared = await budget.reserve(0, 'cold', claims)
  for (const { points } of shared.claims) t.ok(points >= 1, 'each of two keys has a cell of it')
  await shared.settle('unsent')
  const reservation = await budget.reserve(3, 'cold')
  t.equal(reservation.points, 3)
  await reservation.settle('unsent')
  const failed = await budget.reserve(3, 'cold')
  t.equal(failed.points, 3)
  await failed.settle('failed')
  t.equal(await points(budget, 9), 3)
  state.fault = null
  await budget.reconcile()
  t.strictSame(usedIn(budget.state()), [10, 10, 10])
  t.equal(await points(budget, 1), 1)
})

t.test('whatever gateways lose the store, spend and are back in any order, no window is passed', async () => {
  const limits = { minute: 600, hour: 1_500, day: 2_400 }
  const step = fc.constantFrom('lose', 'lose late', 'back', 'cold', 'stale', 'wait')
  const span = { minute: minuteMs, hour: hourMs, day: utcDayMs }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(2), step, fc.nat(99)), { minLength: 20, maxLength: 60 }),
      async steps => {
        const clock = manualClock(start)
        const embedded = openEmbeddedStore(':memory:', clock)
        const gateways = Array.from({ length: 3 }, () => {
          const { store, state } = faultyStore(embedded)
          // As long as all can see one another.
          const instances = () => 3
          return { ...budgetOn(store, clock, { ...fleet, instances, limits }), state }
        })
        // As the provider counts: when a request ends.
        const counted = new Map<string, number>()
        const count = (weight: number): void => {
          for (const name of ['minute', 'hour', 'day'] as const) {
            const window = `${name} ${Math.floor(clock.now() / span[name])}`
            const sum = (counted.get(window) ?? 0) + weight
            counted.set(window, sum)
            if (sum > limits[name]) throw new Error(`${sum} of ${limits[name]} in ${window}`)
          }
        }
        for (const { budget } of gateways) await budget.reconcile()
        for (const [i, what, amount] of steps) {
          const { budget, state } = gateways[i] as (typeof gateways)[0]
          if (what === 'lose') state.fault = 'before'
          else if (what === 'lose late') state.fault = 'after'
          else if (what === 'back') {
            state.fault = null
            await budget.reconcile()
          } else if (what === 'wait') clock.advance(amount * 400)
          else {
            const reservation = await budget.reserve(amount * 2, what === 'cold' ? 'cold' : 'refresh')
            const outcome = amount % 5 === 0 ? 'unsent' : 'answered'
            if (outcome === 'answered') count(reservation.points * 3)
            await reservation.settle(outcome)
          }
        }
        await embedded.close()
      },
    ),
    { numRuns: 150 },
  )
})

t.test('where nobody else shares the store, all that is left may be spent without it', async t => {
  const { budget, state } = openBudget(t)
  t.equal(await spend(budget, 100, 'cold'), 100)
  state.fault = 'before'
  t.equal(await spend(budget, 999, 'cold'), 100)
  t.equal(await spend(budget, 1, 'refresh'), 0, 'not even of what is over-spent already')
  state.fault = null
  await budget.reconcile()
  t.strictSame(usedIn(budget.state()), [600, 600, 600])
})

for (const turns of [1, 2, 3, 4, 5])
  t.test(`what is pending counts as spent: reconciliations ${turns} turns apart`, async t => {
    const { budget, clock, state } = openBudget(t, { ...fleet, instances: () => 2, outageShare: 0.5 })
    await budget.reconcile()
    state.fault = 'before'
    clock.advance(120_000)
    // So that reads and reservations interleave at every step.
    const reservations: Promise<Reservation>[] = []
    for (let i = 0; i < 200; i++) {
      for (let turn = 0; turn < turns; turn++) await null
      void budget.reconcile()
      reservations.push(budget.reserve(1, 'cold'))
    }
    const granted = (await Promise.all(reservations)).reduce((sum, { points }) => sum + points, 0)
    t.equal(granted, 50)
  })

t.test('gateways that went out of sight still count as sharers for a day', async t => {
  let alive = 4
  const { budget, clock, state } = openBudget(t, { instances: () => alive, outageShare: 0.1 })
  await budget.reconcile()
  clock.advance(23 * hourMs)
  await budget.reconcile()
  alive = 1
  clock.advance(utcDayMs)
  await budget.reconcile()
  state.fault = 'before'
  t.equal(await points(budget, 999), 5)
  state.fault = null
  clock.advance(2 * minuteMs)
  await budget.reconcile()
  state.fault = 'before'
  t.equal(await points(budget, 999), 20)
})

t.test('another may have the part of one that spent nothing of it, and reported the rest', async t => {
  const { budget, clock, state } = openBudget(t, fleet)
  t.ok(budget.isSettled())
  await spend(budget, 5, 'cold')
  t.ok(budget.isSettled(), 'the store has it')
  state.fault = 'before'
  await budget.reconcile()
  t.notOk(budget.isSettled(), 'the store is away')
  state.fault = null
  await budget.reconcile()
  t.ok(budget.isSettled())
  state.fault = 'before'
  t.ok((await spend(budget, 1, 'cold')) > 0)
  state.fault = null
  await budget.reconcile()
  t.match(budget.state(), { shared: true })
  t.notOk(budget.isSettled(), 'a part of the day is spent')
  clock.advance(utcDayMs + hourMs)
  t.ok(budget.isSettled(), 'the day is over')
})

t.test('a store that applies a change and loses its reply never makes the budget larger', async t => {
  const { budget, clock, state, store } = openBudget(t, fleet)
  const other = budgetOn(store, clock, fleet).budget
  const reservation = await budget.reserve(100, 'cold')
  await spend(other, 90, 'cold')
  state.fault = 'after'
  await reservation.settle('limited')
  clock.advance(120_000)
  t.equal(await spend(budget, 50, 'cold'), 3)
  await budget.reconcile()
  state.fault = null
  await budget.reconcile()
  await other.reconcile()
  const [minute = 0, ...longer] = usedIn(other.state())
  t.ok(minute >= 9, `${minute} for 3 points spent`)
  for (const used of longer) t.ok(used >= 279, `${used} for 93 points spent`)
})

t.test(
  'what the store lacks is reported once, however often it applies a try and loses its reply',
  async t => {
    const { budget, state } = openBudget(t, fleet)
    await budget.reconcile()
    state.fault = 'before'
    t.equal(await spend(budget, 3, 'cold'), 3)
    state.fault = 'after'
    for (let i = 0; i < 5; i++) await budget.reconcile()
    state.fault = null
    await budget.reconcile()
    t.strictSame(usedIn(budget.state()), [9, 9, 9])
  },
)

t.test('a budget that ends waits for the store, and what fails after that is no outage', async t => {
  const { clock, store, state } = openBudget(t)
  const gate = Promise.withResolvers<void>()
  const spendLate: SpendingStore['spend'] = async spending => {
    const reply = await store.spend(spending)
    await gate.promise
    return reply
  }
  const { budget, events } = budgetOn({ ...store, spend: spendLate }, clock)
  const reserved = budget.reserve(1, 'cold')
  const ended = budget.end().then(() => 'ended')
  t.not(await Promise.race([ended, new Promise(setImmediate)]), 'ended')
  gate.resolve()
  t.equal(await ended, 'ended')
  t.equal((await reserved).points, 1)
  state.fault = 'before'
  await budget.reconcile()
  t.strictSame(events, [])
})

t.test('many failures of the store are one outage event, and many successes one recovery event', async t => {
  const { budget, clock, events, state } = openBudget(t, fleet)
  const takeMany = async () => {
    const reservations = await Promise.all(Array.from({ length: 20 }, () => budget.reserve(5, 'cold')))
    return reservations.reduce((sum, { points }) => sum + points, 0)
  }
  await budget.reconcile()
  state.fault = 'before'
  await budget.reconcile()
  t.equal(state.steps.length, 2, 'a reconciliation asks a store that is away once')
  t.equal(await takeMany(), 3)
  clock.advance(120_000)
  t.equal(await takeMany(), 3)
  state.fault = null
  t.equal(await takeMany(), 100)
  t.equal(await takeMany(), 87)
  t.strictSame(events, ['away', 'back'])
  t.strictSame(usedIn(budget.state()), [570, 579, 579])
})

t.test('freshness stretches by the last known spending of the day, and restarts with the day', async t => {
  const { budget, clock } = openBudget(t, { limits: { ...none, day: freeLimits.day } })
  const dayEnd = (Math.floor(start / utcDayMs) + 1) * utcDayMs
  const dayShare = (dayEnd - start) / 86_400_000
  t.equal(budget.stretch(1_000), 1)
  t.equal(budget.stretch(36_000).toFixed(6), (4 * dayShare).toFixed(6))
  await budget.reserve(1_500, 'refresh')
  t.equal(budget.stretch(36_000).toFixed(6), (8 * dayShare).toFixed(6))
  await budget.reserve(9_999, 'refresh')
  t.equal(budget.stretch(36_000), Number.POSITIVE_INFINITY)
  clock.set(dayEnd)
  t.equal(budget.stretch(36_000), 4)
})

// From here on: new settings for a budget at work.

const settings = {
  ...{ provider: 'acc1', limits: freeLimits, reserve: 0.1, keyShare: 0.25, outageShare: null },
  longestRequestMs: 30_000,
}

t.test('a larger day ends the stretch, which otherwise never falls within a day', async t => {
  const { budget } = openBudget(t, { limits: { ...none, day: 1_000 } })
  const before = budget.stretch(10_000)
  t.ok(before > 5, `${before}`)
  budget.apply({ ...settings, limits: { ...none, day: 100_000 } })
  t.equal(budget.stretch(10_000), 1)
})

t.test('a longer timeout charges the windows that a request may then end in', async t => {
  const { budget } = openBudget(t, { longestRequestMs: 1_000 })
  await budget.reserve(1, 'cold')
  const windowsOf = async () => (await budget.reserve(1, 'cold')).isValid()
  t.ok(await windowsOf())
  const granted = await budget.reserve(1, 'cold')
  budget.apply({ ...settings, longestRequestMs: 60_000 })
  t.notOk(granted.isValid(), 'a grant of before does not cover the next minute')
  t.ok(await windowsOf())
})

t.test('a raised limit lifts what it held back, and a lowered one lifts nothing', async t => {
  const { budget, clock } = openBudget(t)
  const refusedAt = clock.now()
  t.notOk(budget.isLifted(refusedAt))
  budget.apply({ ...settings, limits: { ...none, day: 300 } })
  clock.advance(60_000)
  const limitedAt = clock.now()
  for (const lower of [{ day: 200 }, { day: 200 }, { minute: 100, day: 200 }]) {
    budget.apply({ ...settings, limits: { ...none, ...lower } })
    t.notOk(budget.isLifted(limitedAt))
  }
  budget.apply({ ...settings, limits: { ...none, day: 400 } })
  t.ok(budget.isLifted(limitedAt))
})

t.test('so does a lowered reserve, and a raised one does not', async t => {
  const { budget, clock } = openBudget(t)
  const refusedAt = clock.now()
  budget.apply({ ...settings, reserve: 0.5 })
  t.notOk(budget.isLifted(refusedAt))
  budget.apply({ ...settings, reserve: 0.4 })
  t.ok(budget.isLifted(refusedAt))
})
