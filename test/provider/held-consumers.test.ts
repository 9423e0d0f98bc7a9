// Without it one key that used up its share could delay or fail the cells of others.

import t, { type Test } from 'tap'
import type { Claim } from '../../src/provider/charge.ts'
import type { ProviderOptions, ProviderParts } from '../../src/provider/client.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { Cell } from '../../src/weather/cell.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'
import { budgetOn } from './budget-set-up.ts'
import { budgetFor, cellsFrom, codesOf, granted, providerAt } from './provider-set-up.ts'

const simulator = await startProvider(t)
const now = Date.parse(noon)
const inAnHour = () => now + 3_600_000
const [one, two, three] = cellsFrom(22, 3) as [Cell, Cell, Cell]
const usedUp = 'key_share_used_up'

const setUp = (t: Test, options: Partial<ProviderOptions>, budget: ProviderParts['budget']) => {
  const due = new Map<() => unknown, number>()
  const clock = {
    ...manualClock(),
    // Nothing is tried again before the test says so.
    timers: {
      every: () => () => {},
      after: (ms: number, work: () => unknown) => {
        due.set(work, ms)
        return () => due.delete(work)
      },
    },
  }
  const wake = () => {
    for (const work of due.keys()) work()
  }
  t.teardown(() => simulator.steer({ fault: 'none', hold: false }))
  const recentConsumers = ['other', 'greedy']
  const set = providerAt(t, simulator.url, { options, clock, budget, recentConsumers })
  return { ...set, clock, due, wake }
}
const turns = async (count = 20) => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
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
    t.hasStrict(provider.throttled('greedy', 'refresh'), { code: usedUp })
    t.equal(provider.throttled('other', 'refresh'), undefined)
  }
})

t.test('a retry fails for the one whose share is used up meanwhile, and for no other', async t => {
  const { provider, requests, loaded } = setUp(t, {}, sharesOf({ greedy: 1 }))
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
  t.strictSame(loaded, ['other', 'other'], 'whose loads are counted')
})

t.test('each request tells the budget who loads, and who may load next', async t => {
  const seen: (readonly Claim[])[] = []
  const { provider } = setUp(
    t,
    {},
    {
      reserve: async (points, _purpose, claims = []) => {
        if (points + claims.length > 0) seen.push(claims)
        return granted(points, { claims: claims.map(claim => ({ ...claim, throttledUntil: null })) })
      },
    },
  )
  await provider.load(one, 'cold', 'greedy')
  await provider.load(two)
  const [greedy, other] = [
    { consumer: 'greedy', points: 1 },
    { consumer: 'other', points: 0 },
  ]
  t.strictSame(seen, [[greedy, other], []], 'where it is loaded for somebody')
})

t.test('a cell that waits is tried again when its share has room, every second at least', async t => {
  for (const [ms, expected] of [
    [5, 20],
    [500, 500],
    [10_000, 1_000],
  ] as const) {
    const { provider, due, wake } = setUp(
      t,
      {},
      budgetFor(
        () => 0,
        () => now + ms,
      ),
    )
    provider.load(one, 'cold', 'greedy').catch(() => {})
    await turns()
    t.strictSame([...due.values()], [expected])
    wake()
    await turns()
    t.strictSame([...due.values()], [expected], 'again where it was too early')
    await provider.close()
    t.equal(due.size, 0, 'and not once it is closed')
  }
})

for (const [order, turnsBetween] of [
  ['greedy, small, greedy', 20],
  ['small, greedy', 20],
  ['greedy and small', 20],
  // Of two requests that reserve at the same time.
  ['greedy, small', 2],
] as const)
  t.test(`the share that has room first is waited for: ${order}, ${turnsBetween} turns apart`, async t => {
    const msFor: Record<string, number> = { greedy: 700, small: 300 }
    const reserve: ProviderParts['budget']['reserve'] = async (_points, _purpose, claims = []) => {
      await turns(5)
      return granted(0, {
        claims: claims.map(({ consumer }) => ({ points: 0, throttledUntil: now + (msFor[consumer] ?? 0) })),
      })
    }
    const { provider, due } = setUp(t, { maxConcurrent: 2 }, { reserve })
    const cells = cellsFrom(22, 3)
    for (const together of order.split(', ')) {
      for (const consumer of together.split(' and '))
        provider.load(cells.pop() as Cell, 'cold', consumer).catch(() => {})
      await turns(turnsBetween)
    }
    await turns()
    t.strictSame([...due.values()], [300])
    for (const [consumer, ms] of Object.entries(msFor))
      t.match(provider.throttled(consumer, 'refresh'), { retryAt: now + ms }, 'each for its own time')
  })

t.test('a cold cell waits for its share as long as it may, and what is not cold does not', async t => {
  for (const [ms, code] of [
    [15_000, undefined],
    [15_001, usedUp],
  ] as const) {
    const { provider } = setUp(
      t,
      {},
      budgetFor(
        () => 0,
        () => now + ms,
      ),
    )
    const codes: string[] = []
    for (const cell of [one, two]) {
      provider.load(cell, 'cold', 'greedy').catch(error => codes.push(error.code))
      await turns()
    }
    t.strictSame(codes, code === undefined ? [] : [code, code])
    t.equal(provider.throttled('greedy', 'cold')?.code, code)
    t.equal(provider.throttled('greedy', 'refresh')?.code, usedUp)
  }
})

t.test('a cell need not wait while another waits for a share, nor after the budget was full', async t => {
  let isFull = true
  const { provider, wake } = setUp(
    t,
    {},
    {
      reserve: async (points, _purpose, claims = []) =>
        granted(isFull ? 0 : points, {
          retryAt: now + 5_000,
          claims: claims.map(({ consumer, points }) => ({
            points: isFull || consumer === 'greedy' ? 0 : points,
            throttledUntil: isFull ? null : now + 10_000,
          })),
        }),
    },
  )
  const first = provider.load(one, 'cold', 'other')
  await turns()
  t.strictSame(await codesOf([provider.load(two, 'refresh', 'other')]), ['provider_limited'])
  isFull = false
  wake()
  t.ok(await first)
  provider.load(two, 'cold', 'greedy').catch(() => {})
  await turns()
  t.equal(provider.waiting(), 1)
  t.strictSame(await codesOf([provider.load(three, 'cold', 'other')]), ['ok'])
})

t.test('a cell that a consumer expedites is its own then, unless it is held back', async t => {
  const { provider, loaded } = setUp(t, {}, sharesOf({ small: 9 }))
  t.strictSame(await codesOf([provider.load(one, 'cold', 'greedy')]), [usedUp])
  await simulator.steer({ hold: true })
  const [blocker, cold, ...ahead] = cellsFrom(23, 4) as [Cell, Cell, Cell, Cell]
  const loads = [provider.load(blocker)]
  await until('it is out', async () => (await simulator.state()).inFlight === 1)
  loads.push(provider.load(cold), ...ahead.map(cell => provider.load(cell, 'refresh_ahead')))
  provider.expedite(ahead[0], 'greedy')
  provider.expedite(ahead[1], 'small')
  await simulator.steer({ hold: false })
  t.strictSame(await codesOf(loads), Array(4).fill('ok'))
  t.strictSame(loaded, ['small'])
})

t.test('one request that finds no room for all of its cells calls no other', async t => {
  const wanted: number[] = []
  const reserve: ProviderParts['budget']['reserve'] = async points => {
    if (points > 0) wanted.push(points)
    return granted(Math.min(points, 1), { retryAt: points > 1 ? now + 10_000 : null })
  }
  const { provider } = setUp(t, { maxConcurrent: 2 }, { reserve })
  await simulator.steer({ hold: true })
  for (const cell of [one, two, three]) provider.load(cell).catch(() => {})
  await until('it is out', async () => (await simulator.state()).inFlight === 1)
  await turns()
  t.strictSame(wanted, [3])
  await simulator.steer({ hold: false })
})

t.test('a cold cell also waits where the provider says that its minute is used up', async t => {
  const always: ProviderParts['budget'] = { reserve: async points => granted(points) }
  const { provider, requests } = setUp(t, { queueForMs: 70_000 }, always)
  await simulator.steer({ fault: 'minutely-limit', times: 1 })
  t.strictSame(await codesOf([provider.load(one)]), ['ok'])
  t.strictSame(requests, [
    ['provider_limited', 1],
    ['ok', 1],
  ])
})

t.test('cells that wait for one share do not delay those that need not wait', async t => {
  let throttledUntil = now + 10_000
  const budget = budgetFor(
    ({ consumer, points }) => (consumer === 'greedy' ? 0 : points),
    () => throttledUntil,
  )
  const { provider, clock, wake, requests } = setUp(t, { maxPointsPerRequest: 2 }, budget)
  const greedy = codesOf([provider.load(one, 'cold', 'greedy')])
  const others = cellsFrom(23, 6).map(cell => provider.load(cell, 'cold', 'other'))
  t.strictSame(await codesOf(others), Array(6).fill('ok'), 'without a timer')
  t.equal(requests.length, 6)
  clock.advance(20_000)
  throttledUntil = inAnHour()
  wake()
  t.strictSame(await greedy, [usedUp])
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
  // The second ones find the consumer held back already.
  for (const latitude of [22, 23]) {
    for (const cell of cellsFrom(latitude, 3)) provider.load(cell, 'cold', 'greedy').catch(() => {})
    await turns()
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
