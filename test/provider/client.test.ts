// The client against a real provider process: how many requests, which cells in which, the cost of one bad point, and the
// timeouts.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { type BreakerOptions, createBreaker } from '../../src/provider/breaker.ts'
import { createProvider, type ProviderOptions, type ProviderParts } from '../../src/provider/client.ts'
import { createProviderCall, type ProviderCallOptions } from '../../src/provider/provider-call.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from '../support/open-meteo.ts'
import { startProvider } from '../support/provider-process.ts'
import { currentAt, daysFrom, hoursFrom } from '../support/slices.ts'
import { until } from '../support/until.ts'

const simulator = await startProvider(t)
const grid = createGrid(0.1)
const cells = (count: number, latitude = 22) =>
  Array.from({ length: count }, (_, i) => grid.cellOf(latitude, 88 + i / 10))

/** A budget that always has room. */
const unlimited: ProviderParts['budget'] = {
  reserve: async points => ({
    points,
    claims: [],
    retryAt: null,
    isValid: () => true,
    limited: async () => {},
    settle: async () => {},
  }),
}

type Setting = {
  network?: Partial<ProviderCallOptions>
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
  const call = createProviderCall(
    { ...callOptions(simulator.url), ...network },
    { protocol: openMeteo, clock },
  )
  const breaker = createBreaker(
    { after: 1_000, halfOpenAfterMs: 1_000, halfOpenAfterAtMostMs: 1_000, ...guard },
    clock,
    () => {},
  )
  const provider = createProvider(
    {
      maxConcurrent: 1,
      maxPointsPerRequest: 100,
      retries: 2,
      retryDelayMs: 1,
      queueForMs: 15_000,
      ...options,
    },
    {
      call,
      protocol: openMeteo,
      breaker,
      budget,
      recentConsumers: () => [],
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
    await simulator.steer({ fault: 'none', now: noon, hold: false })
    provider.close()
    await call.close()
  })
  const loadAll = (requested: ReturnType<typeof cells>) =>
    Promise.allSettled(requested.map(cell => provider.load(cell))).then(results =>
      results.map(({ status }) => status),
    )
  return { provider, requests, clock, loadAll }
}
type Tap = { teardown(fn: () => unknown): void }

t.test('a request has at most maxPointsPerRequest points', async t => {
  const { loadAll, requests } = setUp(t, { maxPointsPerRequest: 4 })
  t.strictSame(await loadAll(cells(10)), Array(10).fill('fulfilled'))
  t.strictSame(requests, [
    ['ok', 4],
    ['ok', 4],
    ['ok', 2],
  ])
})

t.test('a burst of cells takes as many requests at once as may be', async t => {
  const atOnce = { maxConcurrent: 3 }
  const { loadAll, requests } = setUp(t, { ...atOnce, maxPointsPerRequest: 4 }, { network: atOnce })
  await simulator.steer({ hold: true })
  const loads = loadAll(cells(20))
  await until('three requests are out', async () => (await simulator.state()).inFlight === 3)
  await simulator.steer({ hold: false })
  t.strictSame(await loads, Array(20).fill('fulfilled'))
  t.strictSame(requests, Array(5).fill(['ok', 4]))
})

t.test(
  'cells that miss while a request is out travel in the next one, and no more are out than may be',
  async t => {
    const { provider, requests } = setUp(t)
    await simulator.steer({ hold: true })
    const [first, ...others] = cells(8).map((cell, i) => (i === 0 ? provider.load(cell) : cell))
    await until('the provider has a request', async () => (await simulator.state()).inFlight > 0)
    const loads = []
    for (const cell of others) {
      loads.push(provider.load(cell as ReturnType<typeof grid.cellOf>))
      // Each in an event-loop turn of its own, as requests from many connections are.
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

t.test('each cell of a batch gets its own timeline', async t => {
  const { provider } = setUp(t)
  const requested = cells(5, 24)
  const together = await Promise.all(requested.map(cell => provider.load(cell)))
  for (const [i, cell] of requested.entries()) t.strictSame(await provider.load(cell), together[i], cell.id)
})

t.test('one bad element fails alone', async t => {
  const { provider } = setUp(t)
  await simulator.steer({ fault: 'missing-section', times: 1 })
  await t.rejects(provider.load(grid.cellOf(22, 88)), { code: 'provider_garbled' })
  // Only the poisoned point fails, in as few requests as halving needs.
  await simulator.steer({ fault: 'poison' })
  const { loadAll, requests } = setUp(t)
  const bad = grid.cellOf(22.2, 91.1)
  t.strictSame(await loadAll([...cells(3), bad, ...cells(4, 23)]), [
    ...Array(3).fill('fulfilled'),
    'rejected',
    ...Array(4).fill('fulfilled'),
  ])
  t.equal(requests.length, 7, 'eight, four and four, two and two, one and one')
})

t.test('an empty answer is the fault of no point: nothing is halved, and the circuit opens', async t => {
  const { provider, loadAll, requests } = setUp(t, {}, { guard: { after: 3, halfOpenAfterMs: 60_000 } })
  await simulator.steer({ fault: 'empty' })
  t.strictSame(await loadAll(cells(8)), Array(8).fill('rejected'))
  t.strictSame(requests, Array(3).fill(['provider_cut_off', 8]))
  await t.rejects(provider.load(cells(1)[0] as Cell), { code: 'provider_circuit_open' })
})

t.test('a request for too much data is halved until it succeeds', async t => {
  const { loadAll, requests } = setUp(t)
  await simulator.steer({ fault: 'too-much-data', times: 3 })
  t.strictSame(await loadAll(cells(8)), Array(8).fill('fulfilled'))
  t.strictSame(
    requests.map(([, points]) => points),
    [8, 4, 2, 1, 1, 2, 4],
  )
})

t.test('weather from a provider with a wrong clock is refused and loaded again', async t => {
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

t.test('clocks may differ by seconds, on either side of midnight', async t => {
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

t.test('the age of weather counts from the request, not from the response', async t => {
  const { provider, clock } = setUp(t)
  await simulator.steer({ hold: true })
  const requestedAt = clock.now()
  const load = provider.load(grid.cellOf(22, 88))
  await until('the provider has a request', async () => (await simulator.state()).inFlight > 0)
  clock.advance(7_000)
  await simulator.steer({ hold: false })
  t.equal((await load).fetchedAt, requestedAt)
})

t.test('a call ends after its total time, however slowly the body trickles', async t => {
  const { provider } = setUp(t, {}, { network: { totalTimeoutMs: 100 } })
  await simulator.steer({ fault: 'trickle', latencyMs: 0 })
  await t.rejects(provider.load(grid.cellOf(22, 88)), {
    code: 'provider_timeout',
    message: /not whole within 100 ms/,
  })
})

t.test('a retry after provider_busy waits at least a second', async t => {
  const { provider, requests } = setUp(t)
  await simulator.steer({ fault: 'concurrent-limit', times: 1 })
  const started = performance.now()
  await provider.load(grid.cellOf(22, 88))
  t.ok(performance.now() - started >= 990)
  t.strictSame(requests, [
    ['provider_busy', 1],
    ['ok', 1],
  ])
})

t.test('the most urgent cells are sent first, and a cell that is expedited overtakes', async t => {
  const { provider, requests } = setUp(t, { maxPointsPerRequest: 2 })
  await simulator.steer({ hold: true, reset: true })
  const [blocker, ahead1, ahead2, ahead3, stale, cold] = cells(6, 23) as [Cell, Cell, Cell, Cell, Cell, Cell]
  const loads = [provider.load(blocker)]
  await until('the provider has a request', async () => (await simulator.state()).inFlight > 0)
  loads.push(...[ahead1, ahead2, ahead3].map(cell => provider.load(cell, 'refresh_ahead')))
  loads.push(provider.load(stale, 'refresh'), provider.load(cold, 'cold'))
  provider.expedite(ahead3)
  t.equal(provider.waiting(), 5)
  await simulator.steer({ hold: false })
  await Promise.all(loads)
  const longitudes = (await simulator.state()).requests.map(({ query }) => query.longitude)
  const names = (...together: Cell[]) => together.map(({ longitude }) => longitude).join(',')
  t.strictSame(longitudes, [names(blocker), names(cold, ahead3), names(stale, ahead1), names(ahead2)])
  t.equal(requests.length, 4)
})

t.test('the next request is sent while the cells of the last one are handed out, one a turn', async t => {
  const { provider } = setUp(t, { maxPointsPerRequest: 20 })
  const leftWhenLoaded: number[] = []
  await Promise.all(
    cells(40).map(async cell => {
      await provider.load(cell)
      leftWhenLoaded.push(provider.waiting())
    }),
  )
  t.equal(leftWhenLoaded[0], 20, 'the second batch waits for the response to the first')
  t.equal(leftWhenLoaded[19], 0, 'and not for the work of those that wait')
})

t.test('a queued cell is requested once, however often it is loaded', async t => {
  const { provider, requests } = setUp(t)
  const [cell] = cells(1) as [Cell]
  const [first, second] = await Promise.all([
    provider.load(cell, 'refresh_ahead'),
    provider.load(cell, 'cold'),
  ])
  t.equal(first, second)
  t.strictSame(requests, [['ok', 1]])
})

/** A budget with a limited number of points that records its calls. */
const budgetOf = (points: number, retryAt: number) => {
  const steps: string[] = []
  const limited = async (until: number) => {
    steps.push(`limited until ${until}`)
  }
  const budget: ProviderParts['budget'] = {
    reserve: async (wanted, purpose) => {
      if (wanted === 0)
        return {
          points: 0,
          claims: [],
          retryAt: null,
          isValid: () => true,
          limited,
          settle: async () => {},
        }
      const granted = Math.min(wanted, points)
      points -= granted
      steps.push(`${purpose} ${granted}/${wanted}`)
      return {
        points: granted,
        claims: [],
        retryAt: granted < wanted ? retryAt : null,
        isValid: () => true,
        limited,
        settle: async outcome => {
          steps.push(outcome)
        },
      }
    },
  }
  const grant = (more: number): void => {
    points += more
  }
  return { budget, steps, grant }
}

t.test(
  'no more cells are sent than the budget has room for, and the others are rejected with retryAt',
  async t => {
    const retryAt = Date.parse(noon) + 3_600_000
    const { budget, steps } = budgetOf(3, retryAt)
    const { provider, requests } = setUp(t, {}, { budget })
    const loads = cells(5).map((cell, i) => provider.load(cell, i < 2 ? 'cold' : 'refresh_ahead'))
    const results = await Promise.allSettled(loads)
    t.strictSame(
      results.map(result =>
        result.status === 'fulfilled' ? 'ok' : [result.reason.code, result.reason.retryAt],
      ),
      ['ok', 'ok', 'ok', ['provider_limited', retryAt], ['provider_limited', retryAt]],
    )
    t.strictSame(requests, [['ok', 3]])
    t.strictSame(steps.slice(0, 2), ['cold 2/2', 'refresh 1/3'])
  },
)

t.test('a cold cell waits for the next window if it is near, and is rejected if not', async t => {
  const { budget, grant } = budgetOf(0, Date.parse(noon) + 10_000)
  const { provider } = setUp(t, { queueForMs: 15_000 }, { budget })
  const near = provider.load(cells(1)[0] as Cell, 'cold')
  const stale = provider.load(cells(2)[1] as Cell, 'refresh')
  await t.rejects(stale, { code: 'provider_limited' })
  t.equal(provider.waiting(), 1)
  grant(1)
  t.ok(await near)
  const far = setUp(t, { queueForMs: 5_000 }, { budget: budgetOf(0, Date.parse(noon) + 10_000).budget })
  await t.rejects(far.provider.load(cells(1)[0] as Cell, 'cold'), { code: 'provider_limited' })
})

t.test('loads are settled when no request is under way, whatever waits for the next window', async t => {
  const { budget, grant } = budgetOf(1, Date.parse(noon) + 10_000)
  const { provider, requests } = setUp(t, { maxPointsPerRequest: 1 }, { budget })
  await simulator.steer({ hold: true })
  const [first, second] = cells(2).map(cell => provider.load(cell))
  const settled = provider.settled().then(() => 'settled')
  await until('the provider has a request', async () => (await simulator.state()).inFlight > 0)
  t.equal(
    await Promise.race([settled, simulator.state()]).then(each => typeof each),
    'object',
    'one is under way',
  )
  await simulator.steer({ hold: false })
  t.equal(await settled, 'settled')
  await first
  t.strictSame(requests, [['ok', 1]])
  t.equal(provider.waiting(), 1, 'the other one waits for its window')
  await provider.settled()
  grant(1)
  await second
})

t.test('every attempt reserves budget, and a 429 closes the budget until its window ends', async t => {
  const paid = budgetOf(1_000, 0)
  const { provider } = setUp(t, { retries: 2 }, { budget: paid.budget })
  await simulator.steer({ fault: 'internal-error', times: 2 })
  await provider.load(cells(1)[0] as Cell)
  const spent = paid.steps.filter(step => step !== 'unsent')
  t.strictSame(spent, ['cold 1/1', 'failed', 'cold 1/1', 'failed', 'cold 1/1', 'answered'])

  const limited = budgetOf(1_000, 0)
  const other = setUp(t, {}, { budget: limited.budget })
  await simulator.steer({ fault: 'hourly-limit' })
  await t.rejects(other.provider.load(cells(1)[0] as Cell, 'refresh'), { code: 'provider_limited' })
  const end = Date.parse('2026-11-21T07:00:02Z')
  t.ok(limited.steps.includes(`limited until ${end}`), limited.steps.join(', '))
})

t.test(
  'a reservation that is no longer valid is settled as unsent, and another is made before anything is sent',
  async t => {
    const { budget, steps } = budgetOf(1_000, 0)
    let takes = 0
    const { provider, requests } = setUp(
      t,
      {},
      {
        budget: {
          ...budget,
          reserve: async (points, purpose) => {
            const reservation = await budget.reserve(points, purpose)
            takes += Math.sign(points)
            const isFirst = takes === 1
            return { ...reservation, isValid: () => !isFirst }
          },
        },
      },
    )
    const { calls } = await simulator.state()
    await provider.load(cells(1)[0] as Cell)
    t.equal((await simulator.state()).calls - calls, 1)
    t.strictSame(requests, [
      ['provider_not_sent', 1],
      ['ok', 1],
    ])
    t.strictSame(
      steps.filter((step, i) => step !== steps[i - 1]),
      ['cold 1/1', 'unsent', 'cold 1/1', 'answered', 'unsent'],
    )
  },
)

t.test('a retry without budget does not close the provider for others', async t => {
  const retryAt = Date.parse(noon) + 3_600_000
  const { budget, steps } = budgetOf(2, retryAt)
  const { provider } = setUp(t, { retries: 1 }, { budget })
  await simulator.steer({ fault: 'internal-error', times: 1 })
  const loads = cells(2).map(cell =>
    t.rejects(provider.load(cell, 'refresh'), { code: 'provider_limited', retryAt }),
  )
  await Promise.all(loads)
  t.notOk(
    steps.some(step => step.startsWith('limited')),
    steps.join(', '),
  )
})

t.test('an open breaker sends nothing, and then probes with a single point', async t => {
  const { provider, requests } = setUp(
    t,
    { retries: 0 },
    { guard: { after: 1, halfOpenAfterMs: 30, halfOpenAfterAtMostMs: 30 } },
  )
  await simulator.steer({ fault: 'internal-error', times: 1 })
  await t.rejects(provider.load(cells(1)[0] as Cell), {
    code: 'provider_failing',
    retryAt: Number,
    // The cell that opened the circuit is retried with all the others.
  })
  await t.rejects(provider.load(cells(1)[0] as Cell), { code: 'provider_circuit_open', retryAt: Number })
  const again = (cell: Cell): Promise<unknown> =>
    provider.load(cell).catch(error => {
      t.equal(error.code, 'provider_circuit_open')
      return again(cell)
    })
  await Promise.all(cells(5).map(again))
  t.strictSame(requests.slice(0, 2), [
    ['provider_failing', 1],
    ['ok', 1],
  ])
  t.strictSame(requests.at(-1), ['ok', 4])
})

t.test('a point that was refused leaves it to the cache for how long it is left alone', async t => {
  const { provider } = setUp(t)
  await simulator.steer({ fault: 'poison' })
  await t.rejects(provider.load(grid.cellOf(22.2, 91.1)), { code: 'provider_refused', retryAt: undefined })
})

/** A budget that grants each consumer so many points, and holds it back for long after that. */
const sharesOf = (shares: Record<string, number>): ProviderParts['budget'] => ({
  reserve: async (points, _purpose, claims = []) => ({
    points,
    claims: claims.map(({ consumer, points: wanted }) => {
      const granted = Math.min(wanted, shares[consumer] ?? 0)
      shares[consumer] = (shares[consumer] ?? 0) - granted
      return { points: granted, heldUntil: granted < wanted ? Date.parse(noon) + 3_600_000 : null }
    }),
    retryAt: null,
    isValid: () => true,
    limited: async () => {},
    settle: async () => {},
  }),
})

t.test('a consumer that has no share for a retry takes nobody else out of it', async t => {
  const { provider, requests } = setUp(t, { retries: 1 }, { budget: sharesOf({ first: 1, other: 3 }) })
  await simulator.steer({ fault: 'internal-error', times: 1 })
  const [one, two] = cells(2) as [Cell, Cell]
  const first = t.rejects(provider.load(one, 'cold', 'first'), { code: 'key_share_used_up' })
  t.ok(await provider.load(two, 'cold', 'other'))
  await first
  t.strictSame(requests, [
    ['provider_failing', 2],
    ['ok', 1],
  ])
})

t.test('stale cells of a consumer that is held back do not wait in the queue', async t => {
  const { provider } = setUp(t, { maxPointsPerRequest: 1 }, { budget: sharesOf({ first: 1 }) })
  const loads = cells(5).map(cell => provider.load(cell, 'refresh', 'first'))
  const outcomes = (await Promise.allSettled(loads)).map(result =>
    result.status === 'fulfilled' ? 'ok' : result.reason.code,
  )
  t.strictSame(outcomes, ['ok', ...Array(4).fill('key_share_used_up')])
  t.equal(provider.waiting(), 0)
  t.match(provider.heldBack('first', 'refresh'), { code: 'key_share_used_up' })
  t.equal(provider.heldBack('other', 'refresh'), undefined)
})

for (const options of [{}, { maxConcurrent: 3, maxPointsPerRequest: 10 }])
  t.test(
    `thousands of cold cells that wait for the next window cost one attempt, not one each: ${JSON.stringify(options)}`,
    async t => {
      const clock = manualClock()
      const { budget, steps, grant } = budgetOf(0, clock.now() + 5_000)
      const { provider } = setUp(t, options, { budget })
      const loads: Promise<unknown>[] = []
      for (const cell of cells(60)) {
        loads.push(provider.load(cell))
        await new Promise(setImmediate)
      }
      const attempts = steps.filter(step => step.startsWith('cold')).length
      t.ok(attempts <= 3, `${attempts} attempts for 60 cells`)
      t.equal(provider.waiting(), 60)
      grant(60)
      await Promise.all(loads)
    },
  )

t.test('once it is closed it sends and reserves nothing more, and ends when its request has', async t => {
  for (const fault of ['none', 'internal-error'] as const) {
    const { budget, steps } = budgetOf(1_000, 0)
    const { provider, requests } = setUp(t, { maxPointsPerRequest: 4 }, { budget })
    await simulator.steer({ hold: true, fault })
    for (const cell of cells(12)) provider.load(cell).catch(() => {})
    await until('a request is out', async () => (await simulator.state()).inFlight === 1)
    const before = [...steps]
    const closed = provider.close()
    provider.load(grid.cellOf(24, 90)).catch(() => {})
    await simulator.steer({ hold: false })
    await closed
    t.strictSame(requests, [[fault === 'none' ? 'ok' : 'provider_failing', 4]])
    t.strictSame(
      steps.filter(step => step.startsWith('cold')),
      before.filter(step => step.startsWith('cold')),
    )
    t.equal(provider.waiting(), 9)
  }
})

t.test('a reservation that comes when it is closed is given back', async t => {
  const { budget, steps } = budgetOf(1_000, 0)
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const { provider, requests } = setUp(
    t,
    {},
    {
      budget: {
        reserve: async (...given) => {
          await gate
          return budget.reserve(...given)
        },
      },
    },
  )
  provider.load(grid.cellOf(24, 90)).catch(() => {})
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  const closed = provider.close()
  open()
  await closed
  t.strictSame(requests, [])
  t.ok(steps.includes('unsent'), steps.join(', '))
})

t.test('a call whose connections are closed was not sent', async t => {
  const call = createProviderCall(callOptions(simulator.url), { protocol: openMeteo, clock: manualClock() })
  const request = openMeteo.requestFor([grid.cellOf(24, 90)])
  await call.text(request)
  await call.close()
  await t.rejects(call.text(request), { code: 'provider_not_sent', retryable: true })
})
