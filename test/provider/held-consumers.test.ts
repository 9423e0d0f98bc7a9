// Consumers beside one whose share of the budget is used up, or that wants more than it has: its cells delay nobody else's,
// fail nobody else's, and wait no longer than they may. A real provider process, and budgets that hold one consumer back.

import t, { type Test } from 'tap'
import { createBreaker } from '../../src/provider/breaker.ts'
import type { Claim } from '../../src/provider/budget.ts'
import { createProvider, type ProviderOptions, type ProviderParts } from '../../src/provider/client.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from '../support/open-meteo.ts'
import { startProvider } from '../support/provider-process.ts'
import { until } from '../support/until.ts'
import { budgetOn } from './budget-set-up.ts'

const simulator = await startProvider(t)
const grid = createGrid(0.1)
const cellsFrom = (latitude: number, count: number) =>
  Array.from({ length: count }, (_, i) => grid.cellOf(latitude, 88 + i / 10))
const now = Date.parse(noon)

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
  const call = createProviderCall(callOptions(simulator.url), { protocol: openMeteo, clock })
  const requests: [outcome: string, points: number][] = []
  const provider = createProvider(
    {
      maxConcurrent: 1,
      maxPointsPerRequest: 100,
      retries: 2,
      retryDelayMs: 1,
      queueForMs: 2_500,
      ...options,
    },
    {
      call,
      protocol: openMeteo,
      breaker: createBreaker(
        { after: 1_000, halfOpenAfterMs: 1_000, halfOpenAfterAtMostMs: 1_000 },
        clock,
        () => {},
      ),
      budget,
      recentConsumers: () => ['other', 'greedy'],
      clock,
      observer: {
        request: (outcome, points) => requests.push([outcome, points]),
        refused: () => {},
        loaded: () => {},
        shareUsedUp: () => {},
      },
    },
  )
  t.teardown(async () => {
    await simulator.steer({ fault: 'none', hold: false })
    provider.close()
    await call.close()
  })
  return { provider, clock, wake, requests }
}

/** Grants each consumer what `pointsFor` says, and holds it back until `heldUntil` for the rest. */
const budgetFor = (
  pointsFor: (claim: Claim) => number,
  heldUntil: number | (() => number) = now + 3_600_000,
): ProviderParts['budget'] => ({
  reserve: async (points, _purpose, claims = []) => ({
    points,
    claims: claims.map(claim => {
      const granted = Math.min(claim.points, pointsFor(claim))
      const until = typeof heldUntil === 'number' ? heldUntil : heldUntil()
      return { points: granted, heldUntil: granted < claim.points ? until : null }
    }),
    retryAt: null,
    isValid: () => true,
    limited: async () => {},
    settle: async () => {},
  }),
})

const codesOf = async (loads: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(loads)).map(result => (result.status === 'fulfilled' ? 'ok' : result.reason.code))

t.test('what a consumer wants refreshed does not wait until its share has room again', async t => {
  let left = 2
  const { provider } = setUp(
    t,
    { maxPointsPerRequest: 20 },
    budgetFor(({ consumer, points }) => {
      if (consumer !== 'greedy') return points
      const granted = Math.min(left, points)
      left -= granted
      return granted
    }),
  )
  const stale = cellsFrom(22, 8).map((cell, i) =>
    provider.load(cell, i % 2 ? 'refresh' : 'refresh_ahead', 'greedy'),
  )
  const ended = codesOf(stale)
  await until('nothing waits', () => provider.waiting() === 0)
  t.strictSame((await ended).toSorted(), [...Array(6).fill('key_share_used_up'), 'ok', 'ok'])
})

t.test(
  'a request that is tried again fails for the one whose share is used up meanwhile, and no other',
  async t => {
    let reservations = 0
    const { provider } = setUp(
      t,
      {},
      budgetFor(({ consumer, points }) => {
        if (consumer === 'other') return points
        reservations += 1
        return reservations > 1 ? 0 : points
      }),
    )
    await simulator.steer({ fault: 'internal-error', times: 1 })
    const [first, second, third] = cellsFrom(22, 3)
    if (!first || !second || !third) throw new Error('there are no cells')
    const codes = await codesOf([
      provider.load(first, 'cold', 'greedy'),
      provider.load(second, 'cold', 'other'),
      provider.load(third, 'refresh', 'other'),
    ])
    t.strictSame(codes, ['key_share_used_up', 'ok', 'ok'])
  },
)

t.test('cells that wait for one share do not delay those that need not wait', async t => {
  let until = now + 10_000
  const { provider, clock, wake, requests } = setUp(
    t,
    { maxPointsPerRequest: 2, queueForMs: 15_000 },
    budgetFor(
      ({ consumer, points }) => (consumer === 'greedy' ? 0 : points),
      () => until,
    ),
  )
  const greedy = codesOf(cellsFrom(22, 2).map(cell => provider.load(cell, 'cold', 'greedy')))
  t.strictSame(
    await codesOf(cellsFrom(23, 6).map(cell => provider.load(cell, 'cold', 'other'))),
    Array(6).fill('ok'),
    'without a timer',
  )
  t.equal(requests.length, 6)
  clock.advance(20_000)
  until = now + 3_600_000
  wake()
  t.strictSame(await greedy, Array(2).fill('key_share_used_up'))
})

t.test('cells that wait for a share are not attempted until it is due', async t => {
  let attempts = 0
  const { reserve } = budgetFor(() => 0, now + 10_000)
  const budget: ProviderParts['budget'] = {
    reserve: (...given) => {
      attempts += 1
      return reserve(...given)
    },
  }
  const { provider } = setUp(t, { maxPointsPerRequest: 2, queueForMs: 15_000 }, budget)
  // The second ones find the consumer held back already.
  for (const latitude of [22, 23]) {
    for (const cell of cellsFrom(latitude, 3)) provider.load(cell, 'cold', 'greedy').catch(() => {})
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  const before = attempts
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.equal(attempts, before)
  t.equal(provider.waiting(), 6)
})

t.test('a consumer that may not refresh may load new cells from the reserve', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const { budget } = budgetOn(store, clock, { limits: { minute: null, hour: null, day: 1_200 } })
  const { provider } = setUp(t, {}, budget)
  const spent = () => budget.state().windows[0]?.used ?? 0
  // Of 1,080 that refreshes may spend.
  await budget.reserve(1_071 / 3, 'cold')
  const [stale, cold] = cellsFrom(22, 2)
  if (!stale || !cold) throw new Error('there are no cells')
  await provider.load(stale, 'cold', 'small')
  t.equal(spent(), 1_074)
  t.strictSame(await codesOf([provider.load(stale, 'refresh', 'small')]), ['key_share_used_up'])
  t.equal(provider.heldBack('small', 'cold'), undefined)
  t.ok(provider.heldBack('small', 'refresh'))
  t.strictSame(await codesOf([provider.load(cold, 'cold', 'small')]), ['ok'])
})

t.test('a budget that was changed applies to a consumer that is held back', async t => {
  let points = 0
  const { provider } = setUp(
    t,
    {},
    budgetFor(() => points),
  )
  const [cell] = cellsFrom(22, 1)
  if (!cell) throw new Error('there is no cell')
  t.strictSame(await codesOf([provider.load(cell, 'cold', 'greedy')]), ['key_share_used_up'])
  t.ok(provider.heldBack('greedy', 'cold'))
  points = 10
  provider.budgetChanged()
  t.equal(provider.heldBack('greedy', 'cold'), undefined)
  t.strictSame(await codesOf([provider.load(cell, 'cold', 'greedy')]), ['ok'])
})

t.test('a clock that is set back holds nobody for longer', async t => {
  const { provider, clock } = setUp(
    t,
    {},
    budgetFor(() => 0),
  )
  const [cell] = cellsFrom(22, 1)
  if (!cell) throw new Error('there is no cell')
  t.strictSame(await codesOf([provider.load(cell, 'cold', 'greedy')]), ['key_share_used_up'])
  t.ok(provider.heldBack('greedy', 'cold'))
  clock.advance(-6 * 3_600_000)
  t.equal(provider.heldBack('greedy', 'cold'), undefined)
})
