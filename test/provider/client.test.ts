// The client against a real provider process: how many requests, which cells in which, what one bad point costs, how
// long it may take.

import t from 'tap'
import { createCalendar } from '../../src/calendar.ts'
import { type BreakerOptions, createBreaker } from '../../src/provider/breaker.ts'
import { createProvider, type ProviderOptions, type ProviderParts } from '../../src/provider/client.ts'
import { createExchange, type ExchangeOptions } from '../../src/provider/exchange.ts'
import { horizonFor } from '../../src/provider/query.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { currentAt, daysFrom, hoursFrom } from '../../src/weather/timeline.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'

const simulator = await startProvider(t)
const grid = createGrid(0.1)
const cells = (count: number, latitude = 22) =>
  Array.from({ length: count }, (_, i) => grid.cellOf(latitude, 88 + i / 10))

/** A budget that always has room. */
const unlimited: ProviderParts['budget'] = {
  take: async points => ({ points, retryAt: null, done: async () => {} }),
  limited: async () => {},
}

type Setting = {
  network?: Partial<ExchangeOptions>
  guard?: Partial<BreakerOptions>
  budget?: ProviderParts['budget']
}

const setUp = (
  t: Tap,
  options: Partial<ProviderOptions> = {},
  { network = {}, guard = {}, budget = unlimited }: Setting = {},
) => {
  const clock = manualClock()
  const requests: [outcome: string, points: number][] = []
  const exchange = createExchange(
    {
      baseUrl: simulator.url,
      apiKey: null,
      connectTimeoutMs: 1_000,
      timeoutMs: 5_000,
      bodyTimeoutMs: 5_000,
      totalTimeoutMs: 10_000,
      maxConcurrent: 1,
      ...network,
    },
    clock,
  )
  const breaker = createBreaker(
    { after: 1_000, restForMs: 1_000, restForAtMostMs: 1_000, ...guard },
    clock,
    () => {},
  )
  const provider = createProvider(
    {
      maxConcurrent: 1,
      maxPointsPerRequest: 100,
      retries: 2,
      retryDelayMs: 1,
      refusedForMs: 600_000,
      queueForMs: 15_000,
      horizon: horizonFor(13 * 3_600_000, 48),
      ...options,
    },
    {
      exchange,
      breaker,
      budget,
      clock,
      calendar: createCalendar('Asia/Dhaka'),
      observer: { request: (outcome, points) => requests.push([outcome, points]) },
    },
  )
  t.teardown(async () => {
    await simulator.steer({ mood: 'ok', now: noon, hold: false })
    provider.close()
    await exchange.close()
  })
  const loadAll = (asked: ReturnType<typeof cells>) =>
    Promise.allSettled(asked.map(cell => provider.load(cell))).then(results =>
      results.map(({ status }) => status),
    )
  return { provider, requests, clock, loadAll }
}
type Tap = { teardown(fn: () => unknown): void }

t.test('a request holds no more points than it may', async t => {
  const { loadAll, requests } = setUp(t, { maxPointsPerRequest: 4 })
  t.strictSame(await loadAll(cells(10)), Array(10).fill('fulfilled'))
  t.strictSame(requests, [
    ['ok', 4],
    ['ok', 4],
    ['ok', 2],
  ])
})

t.test(
  'cells that miss while a request is out travel in the next one, and no more are out than may be',
  async t => {
    const { provider, requests } = setUp(t)
    await simulator.steer({ hold: true })
    const [first, ...others] = cells(8).map((cell, i) => (i === 0 ? provider.load(cell) : cell))
    while ((await simulator.state()).inFlight === 0);
    const loads = []
    for (const cell of others) {
      loads.push(provider.load(cell as ReturnType<typeof grid.cellOf>))
      // Each in a turn of the event loop of its own, as requests from many connections are.
      await simulator.state()
    }
    t.equal((await simulator.state()).inFlight, 1)
    await simulator.steer({ hold: false })
    await Promise.all([first, ...loads])
    t.strictSame(requests, [
      ['ok', 1],
      ['ok', 7],
    ])
  },
)

t.test('each cell gets its own timeline, whatever it travelled with', async t => {
  const { provider } = setUp(t)
  const asked = cells(5, 24)
  const together = await Promise.all(asked.map(cell => provider.load(cell)))
  for (const [i, cell] of asked.entries()) t.strictSame(await provider.load(cell), together[i], cell.id)
})

t.test('one element that is not as asked fails alone', async t => {
  const { provider } = setUp(t)
  await simulator.steer({ mood: 'missing-section', times: 1 })
  await t.rejects(provider.load(grid.cellOf(22, 88)), { code: 'provider_garbled' })
  // The provider answers for whom it knows; the point it can't stand fails, in as few requests as halving takes.
  await simulator.steer({ mood: 'poison' })
  const { loadAll, requests } = setUp(t)
  const bad = grid.cellOf(22.2, 91.1)
  t.strictSame(await loadAll([...cells(3), bad, ...cells(4, 23)]), [
    ...Array(3).fill('fulfilled'),
    'rejected',
    ...Array(4).fill('fulfilled'),
  ])
  t.equal(requests.length, 7, 'eight, four and four, two and two, one and one')
})

t.test('a request that is too much is halved until it is not', async t => {
  const { loadAll, requests } = setUp(t)
  await simulator.steer({ mood: 'too-much-data', times: 3 })
  t.strictSame(await loadAll(cells(8)), Array(8).fill('fulfilled'))
  t.strictSame(
    requests.map(([, points]) => points),
    [8, 4, 2, 1, 1, 2, 4],
  )
})

t.test('a provider whose clock is off is not believed, and is asked again', async t => {
  const { provider } = setUp(t)
  for (const now of ['2026-11-19T06:00:00Z', '2026-11-21T09:00:00Z', '2026-11-23T06:00:00Z']) {
    await simulator.steer({ now })
    await t.rejects(
      provider.load(grid.cellOf(22, 88)),
      { code: 'provider_garbled', message: /do not cover now/ },
      now,
    )
  }
  await simulator.steer({ now: '2026-11-21T06:10:00Z' })
  await provider.load(grid.cellOf(22, 88))
})

t.test('clocks that differ by seconds are believed, on either side of midnight', async t => {
  const { provider, clock } = setUp(t)
  const turns = ['2026-11-21T18:00:00Z', '2026-11-21T06:15:00Z', '2026-11-21T07:00:00Z']
  for (const turn of turns)
    for (const [ours, theirs] of [
      [-3_000, 3_000],
      [3_000, -3_000],
    ] as const) {
      clock.set(Date.parse(turn) + ours)
      await simulator.steer({ now: new Date(Date.parse(turn) + theirs).toISOString() })
      const timeline = await provider.load(grid.cellOf(22, 88))
      const calendar = createCalendar('Asia/Dhaka')
      t.ok(currentAt(timeline, clock.now(), calendar), `quarter-hour at ${turn}`)
      t.ok(hoursFrom(timeline, clock.now(), calendar, 48), `hours at ${turn}`)
      t.ok(daysFrom(timeline, clock.now(), calendar, 7), `days at ${turn}`)
    }
})

t.test('weather is told to be as old as the question, not as the answer', async t => {
  const { provider, clock } = setUp(t)
  await simulator.steer({ hold: true })
  const asked = clock.now()
  const load = provider.load(grid.cellOf(22, 88))
  while ((await simulator.state()).inFlight === 0);
  clock.advance(7_000)
  await simulator.steer({ hold: false })
  t.equal((await load).fetchedAt, asked)
})

t.test('an exchange ends after its total time, however slowly the body trickles', async t => {
  const { provider } = setUp(t, {}, { network: { totalTimeoutMs: 100 } })
  await simulator.steer({ mood: 'trickle', latencyMs: 0 })
  await t.rejects(provider.load(grid.cellOf(22, 88)), {
    code: 'provider_timeout',
    message: /not whole within 100 ms/,
  })
})

t.test('a busy provider is given a second before the next try', async t => {
  const { provider, requests } = setUp(t)
  await simulator.steer({ mood: 'concurrent-limit', times: 1 })
  const started = performance.now()
  await provider.load(grid.cellOf(22, 88))
  t.ok(performance.now() - started >= 990)
  t.strictSame(requests, [
    ['provider_busy', 1],
    ['ok', 1],
  ])
})
