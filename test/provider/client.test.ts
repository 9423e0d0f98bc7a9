// Without it cells could cost more requests than they need, or one bad point could fail others.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import type { ProviderParts } from '../../src/provider/client.ts'
import { garbled, ProviderError } from '../../src/provider/errors.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'
import { currentAt, daysFrom, hoursFrom } from '../weather/slices.ts'
import {
  answering,
  anyTimeline,
  budgetFor,
  callOptions,
  cellsFrom,
  codesOf,
  granted,
  openMeteo,
  providerAt,
} from './provider-set-up.ts'

const simulator = await startProvider(t)
const grid = createGrid(0.1)
const cells = (count: number, latitude = 22) => cellsFrom(latitude, count)
const [cell] = cells(1) as [Cell]
const inAnHour = Date.parse(noon) + 3_600_000
const inTenSeconds = Date.parse(noon) + 10_000

type Given = Parameters<typeof providerAt>[2]

const setUp = (t: Test, options: NonNullable<Given>['options'] = {}, given: Given = {}) => {
  t.teardown(() => simulator.steer({ fault: 'none', now: noon, hold: false }))
  const set = providerAt(t, simulator.url, { options, ...given })
  const loadAll = (requested: readonly Cell[]) => codesOf(requested.map(each => set.provider.load(each)))
  return { ...set, loadAll }
}
const oks = (count: number): string[] => Array(count).fill('ok')
const requestIsOut = (count = 1) =>
  until('requests are out', async () => (await simulator.state()).inFlight === count)

t.test('a burst of cells takes as many requests at once, of as many points, as may be', async t => {
  const atOnce = { maxConcurrent: 3 }
  const { loadAll, requests } = setUp(t, { ...atOnce, maxPointsPerRequest: 4 }, { network: atOnce })
  await simulator.steer({ hold: true })
  const loads = loadAll(cells(18))
  await requestIsOut(3)
  await simulator.steer({ hold: false })
  t.strictSame(await loads, oks(18))
  t.strictSame(
    requests.toSorted((one, other) => other[1] - one[1]),
    [...Array(4).fill(['ok', 4]), ['ok', 2]],
  )
  await simulator.steer({ hold: true })
  const others = loadAll(cells(9))
  await requestIsOut(3)
  await simulator.steer({ hold: false })
  t.strictSame(await others, oks(9), 'also where one cell is left')
})

t.test('cells of one turn of the event loop share one request, and one attempt', async t => {
  let reservations = 0
  const reserve: ProviderParts['budget']['reserve'] = async points => {
    reservations += 1
    return granted(points)
  }
  const { provider, requests } = setUp(t, {}, { protocol: answering(), budget: { reserve } })
  t.strictSame(await codesOf(cells(10).map(each => provider.load(each))), oks(10))
  await provider.settled()
  t.equal(reservations, 2, 'for cold cells and for others')
  const first = provider.load(cell)
  for (let i = 0; i < 50; i++) await null
  t.strictSame(await codesOf([first, provider.load(grid.cellOf(24, 90))]), oks(2))
  t.strictSame(requests, [
    ['ok', 10],
    ['ok', 2],
  ])
})

t.test('a consumer takes a twentieth of a request, or all of it where no other loads', async t => {
  for (const [recentConsumers, consumers, expected] of [
    [[], ['a', 'b'], [42, 2]],
    [
      ['a', 'b'],
      ['a', 'a'],
      [21, 21, 2],
    ],
    [['a'], ['a', 'a'], [44]],
    [['a', 'b'], [undefined, undefined], [44]],
  ] as const) {
    const budget = budgetFor(
      ({ points }) => points,
      () => 0,
    )
    const given = { protocol: answering(), budget, recentConsumers }
    const { provider, requests } = setUp(t, { maxPointsPerRequest: 420 }, given)
    await codesOf(cells(44).map((each, i) => provider.load(each, 'cold', consumers[i % 2])))
    t.strictSame(
      requests.map(([, points]) => points),
      expected,
    )
  }
})

t.test('cells that miss while a request is out travel in the next one, each with its timeline', async t => {
  const { provider, requests } = setUp(t)
  await simulator.steer({ hold: true })
  const [first, ...others] = cells(8) as [Cell, ...Cell[]]
  const loads = [provider.load(first)]
  await requestIsOut()
  for (const other of others) {
    loads.push(provider.load(other))
    // Each in an event-loop turn of its own, as requests from many connections are.
    await simulator.state()
  }
  t.equal((await simulator.state()).inFlight, 1, 'no more are out than may be')
  await simulator.steer({ hold: false })
  const together = await Promise.all(loads)
  t.strictSame(requests, [
    ['ok', 1],
    ['ok', 7],
  ])
  for (const [i, each] of cells(8).entries()) t.strictSame(await provider.load(each), together[i], each.id)
})

t.test('one bad element or point fails alone', async t => {
  const { provider, loadAll, requests } = setUp(t)
  await simulator.steer({ fault: 'missing-section', times: 1 })
  await t.rejects(provider.load(cell), { code: 'provider_garbled' })
  // Only the poisoned point fails, in as few requests as halving needs.
  await simulator.steer({ fault: 'poison' })
  const bad = grid.cellOf(22.2, 91.1)
  const codes = await loadAll([...cells(3), bad, ...cells(4, 23)])
  t.strictSame(codes, [...oks(3), 'provider_refused', ...oks(4)])
  t.equal(requests.length, 1 + 7, 'eight, four and four, two and two, one and one')
  const forTheCache = { code: 'provider_refused', retryAt: undefined }
  await t.rejects(provider.load(bad), forTheCache, 'which decides for how long it is left alone')

  const oneBad = answering(of => of.map((_, i) => (i === 1 ? garbled('no_value', 'x', true) : anyTimeline)))
  const mixed = setUp(t, {}, { protocol: oneBad })
  t.strictSame(await mixed.loadAll(cells(3)), ['ok', 'provider_garbled', 'ok'])
  t.strictSame(mixed.requests, [['provider_garbled', 3]])
  const broken = answering(() => {
    throw new TypeError('a bug')
  })
  const own = setUp(t, {}, { protocol: broken })
  await t.rejects(own.provider.load(cell), { message: 'a bug' })
  t.strictSame(own.requests, [['internal', 1]])
})

t.test('each retry waits twice as long as the one before, or half of that', async t => {
  const failing = answering(() => {
    throw new ProviderError('provider_failing', 'x')
  })
  const pauses: unknown[] = []
  const { setTimeout: later } = globalThis
  const recorded = (work: () => void, ms?: number) => {
    // Connections have longer ones.
    if (Number(ms) <= 32) pauses.push(ms)
    return later(work, ms)
  }
  t.intercept(globalThis, 'setTimeout', { value: recorded })
  for (const [chance, expected] of [
    [0, [4, 8, 16]],
    [1, [8, 16, 32]],
  ] as const) {
    t.intercept(Math, 'random', { value: () => chance })
    const { provider } = providerAt(t, simulator.url, {
      ...{ options: { retries: 3, retryDelayMs: 8 }, protocol: failing },
    })
    t.strictSame(await codesOf([provider.load(cell)]), ['provider_failing'])
    t.strictSame(pauses.splice(0), expected)
  }
})

t.test('an empty answer is the fault of no point: nothing is halved, and the circuit opens', async t => {
  const { provider, loadAll, requests } = setUp(t, {}, { guard: { after: 3, halfOpenAfterMs: 60_000 } })
  await simulator.steer({ fault: 'empty' })
  t.notOk((await loadAll(cells(8))).includes('ok'))
  t.strictSame(requests, Array(3).fill(['provider_cut_off', 8]))
  await t.rejects(provider.load(cell), { code: 'provider_circuit_open' })
})

t.test('complete answers never open the circuit, however often their weather is refused', async t => {
  const { provider, loadAll } = setUp(t, {}, { guard: { after: 3, halfOpenAfterMs: 60_000 } })
  for (const fault of ['all-null', 'wrong-offset', 'wrong-count', 'missing-section']) {
    await simulator.steer({ fault })
    for (let i = 0; i < 4; i++)
      t.strictSame(await loadAll(cells(2)), ['provider_garbled', 'provider_garbled'], fault)
  }
  await simulator.steer({ fault: 'none' })
  await provider.load(cell)
})

t.test('a request for too much data is halved until it succeeds', async t => {
  const { loadAll, requests } = setUp(t)
  await simulator.steer({ fault: 'too-much-data', times: 3 })
  t.strictSame(await loadAll(cells(8)), oks(8))
  t.strictSame(
    requests.map(([, points]) => points),
    [8, 4, 2, 1, 1, 2, 4],
  )
})

t.test('weather from a provider with a wrong clock is refused and loaded again', async t => {
  const { provider } = setUp(t)
  const refused = { code: 'provider_garbled', message: /do not cover now/ }
  for (const now of ['2026-11-19T06:00:00Z', '2026-11-21T09:00:00Z', '2026-11-23T06:00:00Z']) {
    await simulator.steer({ now })
    await t.rejects(provider.load(cell), refused, now)
  }
  await simulator.steer({ now: '2026-11-21T06:10:00Z' })
  await provider.load(cell)
})

t.test('clocks may differ by seconds, on either side of midnight', async t => {
  const { provider, clock } = setUp(t)
  const calendar = createCalendar('Asia/Dhaka')
  for (const turn of ['2026-11-21T18:00:00Z', '2026-11-21T06:15:00Z', '2026-11-21T07:00:00Z'])
    for (const ours of [-3_000, 3_000]) {
      clock.set(Date.parse(turn) + ours)
      await simulator.steer({ now: new Date(Date.parse(turn) - ours).toISOString() })
      const timeline = await provider.load(cell)
      t.ok(currentAt(timeline, clock.now(), calendar), `quarter-hour at ${turn}`)
      t.ok(hoursFrom(timeline, clock.now(), calendar, 48), `hours at ${turn}`)
      t.ok(daysFrom(timeline, clock.now(), calendar, 7), `days at ${turn}`)
    }
})

t.test('the age of weather counts from the request, not from the response', async t => {
  const { provider, clock } = setUp(t)
  await simulator.steer({ hold: true })
  const requestedAt = clock.now()
  const load = provider.load(cell)
  await requestIsOut()
  clock.advance(7_000)
  await simulator.steer({ hold: false })
  t.equal((await load).fetchedAt, requestedAt)
})

t.test('the most urgent cells are sent first, a cell that is expedited overtakes, each once', async t => {
  const { provider, requests } = setUp(t, { maxPointsPerRequest: 2 })
  await simulator.steer({ hold: true, reset: true })
  const [blocker, ahead1, ahead2, ahead3, stale, cold] = cells(6, 23) as [Cell, Cell, Cell, Cell, Cell, Cell]
  const loads = [provider.load(blocker)]
  await requestIsOut()
  loads.push(...[ahead1, ahead2, ahead3].map(each => provider.load(each, 'refresh_ahead')))
  loads.push(provider.load(stale, 'refresh'), provider.load(cold, 'refresh'))
  const again = provider.load(cold, 'cold')
  provider.expedite(ahead3)
  t.equal(provider.waiting(), 5)
  await simulator.steer({ hold: false })
  t.equal(await again, (await Promise.all(loads)).at(-1), 'however often it is loaded')
  const longitudes = (await simulator.state()).requests.map(({ query }) => query.longitude)
  const names = (...together: Cell[]) => together.map(({ longitude }) => longitude).join(',')
  t.strictSame(longitudes, [names(blocker), names(cold, ahead3), names(stale, ahead1), names(ahead2)])
  t.equal(requests.length, 4)
})

t.test('the next request is sent while the cells of the last one are handed out, one a turn', async t => {
  const { provider } = setUp(t, { maxPointsPerRequest: 20 })
  const leftWhenLoaded: number[] = []
  await Promise.all(
    cells(40).map(async each => {
      await provider.load(each)
      leftWhenLoaded.push(provider.waiting())
    }),
  )
  t.equal(leftWhenLoaded[0], 20, 'the second batch waits for the response to the first')
  t.equal(leftWhenLoaded[19], 0, 'and not for the work of those that wait')
})

t.test('cells are handed out one a turn, and a quick provider fills no memory with others', async t => {
  let [turn, requested, loaded, most] = [0, 0, 0, 0]
  const protocol = answering(of => {
    requested += of.length
    most = Math.max(most, requested - loaded)
    return of.map(() => anyTimeline)
  })
  const { provider } = setUp(t, { maxPointsPerRequest: 20 }, { protocol })
  let next = setImmediate(function count() {
    turn += 1
    next = setImmediate(count)
  })
  const turns = new Set<number>()
  await Promise.all(
    cells(100).map(async each => {
      await provider.load(each)
      if (loaded < 20) turns.add(turn)
      loaded += 1
    }),
  )
  clearImmediate(next)
  t.equal(turns.size, 20)
  t.ok(most <= 40, `${most} are requested and not handed out`)
})

/** A budget with a limited number of points that records its calls. */
const budgetOf = (points: number, retryAt: number) => {
  const steps: string[] = []
  const limited = async (until: number) => {
    // As by a store that takes its time.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    steps.push(`limited until ${until}`)
  }
  const budget: ProviderParts['budget'] = {
    reserve: async (wanted, purpose) => {
      if (wanted === 0) return granted(0, { limited })
      const given = Math.min(wanted, points)
      points -= given
      steps.push(`${purpose} ${given}/${wanted}`)
      return granted(given, {
        retryAt: given < wanted ? retryAt : null,
        limited,
        settle: async outcome => void steps.push(outcome),
      })
    },
  }
  const grant = (more: number): void => {
    points += more
  }
  const reservations = () => steps.filter(step => /\d\/\d/.test(step))
  return { budget, steps, grant, reservations }
}

t.test('no more cells are sent than the budget has room for; the others are told when to retry', async t => {
  const { budget, steps } = budgetOf(3, inAnHour)
  const { provider, requests } = setUp(t, {}, { budget })
  const loads = cells(5).map((each, i) => provider.load(each, i < 2 ? 'cold' : 'refresh_ahead'))
  const results = await Promise.allSettled(loads)
  const limited = { reason: { code: 'provider_limited', retryAt: inAnHour } }
  t.match(results, [...Array(3).fill({ status: 'fulfilled' }), limited, limited])
  t.strictSame(requests, [['ok', 3]])
  t.strictSame(steps.slice(0, 2), ['cold 2/2', 'refresh 1/3'])
})

t.test('a cold cell waits for the next window if it is near, and is rejected if not', async t => {
  const { budget, grant } = budgetOf(0, inTenSeconds)
  const { provider } = setUp(t, {}, { budget })
  const near = provider.load(cell, 'cold')
  const stale = provider.load(cells(2)[1] as Cell, 'refresh')
  await t.rejects(stale, { code: 'provider_limited' })
  t.equal(provider.waiting(), 1)
  grant(1)
  t.ok(await near)
  const far = setUp(t, { queueForMs: 5_000 }, { budget: budgetOf(0, inTenSeconds).budget })
  await t.rejects(far.provider.load(cell, 'cold'), { code: 'provider_limited' })
})

t.test('a cold cell is rejected in time where the budget is always a moment away', async t => {
  const clock = manualClock()
  let attempts = 0
  let setBackAt = 0
  const reserve: ProviderParts['budget']['reserve'] = async points => {
    if (points === 0) return granted(0)
    attempts += 1
    clock.advance(attempts === setBackAt ? -3_600_000 : 1_000)
    // It grants in the end, so that a wait without end fails.
    return attempts > 20 ? granted(points) : granted(0, { retryAt: clock.now() + 20 })
  }
  const { provider } = setUp(t, { queueForMs: 5_000 }, { budget: { reserve }, clock })
  const refused = { code: 'provider_limited', retryAt: Date.parse(noon) + 6_020 }
  await t.rejects(provider.load(cell), refused)
  t.equal(attempts, 6)
  attempts = 0
  setBackAt = 3
  await t.rejects(provider.load(cell), { code: 'provider_limited' })
  t.equal(attempts, 8, 'from when the clock was set back')
})

t.test('the wait for a turn is no part of the wait for the budget', async t => {
  const { budget, grant, reservations } = budgetOf(1, inTenSeconds)
  const { provider, clock } = setUp(t, { maxPointsPerRequest: 1, queueForMs: 5_000 }, { budget })
  await simulator.steer({ hold: true })
  const loads = cells(2).map(each => provider.load(each))
  await requestIsOut()
  clock.advance(6_000)
  await simulator.steer({ hold: false })
  await until('the second finds no room', () => reservations().length > 1)
  grant(1)
  t.strictSame(await codesOf(loads), oks(2))
})

t.test('loads are settled when no request is under way, whatever waits for the next window', async t => {
  const { budget, grant } = budgetOf(1, inTenSeconds)
  const { provider, requests } = setUp(t, { maxPointsPerRequest: 1 }, { budget })
  await simulator.steer({ hold: true })
  const [first, second] = cells(2).map(each => provider.load(each))
  const settled = provider.settled().then(() => 'settled')
  await requestIsOut()
  t.not(await Promise.race([settled, simulator.state()]), 'settled', 'one is under way')
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
  const { budget, steps } = budgetOf(1_000, 0)
  const { provider, clock } = setUp(t, {}, { budget })
  await simulator.steer({ fault: 'internal-error', times: 2 })
  await provider.load(cell)
  const spent = steps.filter(step => step !== 'unsent')
  t.strictSame(spent, ['cold 1/1', 'failed', 'cold 1/1', 'failed', 'cold 1/1', 'answered'])
  clock.advance(60_000)
  await simulator.steer({ fault: 'hourly-limit' })
  await t.rejects(provider.load(cell, 'refresh'), { code: 'provider_limited' })
  const end = Date.parse('2026-11-21T07:00:02Z')
  t.ok(steps.includes(`limited until ${end}`), steps.join(', '))
})

t.test(
  'a complete answer that does not match costs what an answer costs, one cut short what is unknown',
  async t => {
    const { budget, steps } = budgetOf(1_000, 0)
    for (const [isComplete, outcome] of [
      [true, 'answered'],
      [false, 'unknown'],
    ] as const) {
      const protocol = answering(() => {
        throw garbled('wrong_place', 'x', isComplete)
      })
      const { provider } = setUp(t, {}, { budget, protocol })
      await t.rejects(provider.load(cell), { code: 'provider_garbled' })
      t.strictSame(steps.splice(0), ['cold 1/1', outcome, 'unsent'])
    }
  },
)

t.test('a reservation that is no longer valid is settled as unsent before another is made', async t => {
  const { budget, steps } = budgetOf(1_000, 0)
  let takes = 0
  const reserve: typeof budget.reserve = async (points, purpose) => {
    takes += Math.sign(points)
    const isFirst = takes === 1
    return { ...(await budget.reserve(points, purpose)), isValid: () => !isFirst || points === 0 }
  }
  const { provider, requests } = setUp(t, {}, { budget: { ...budget, reserve } })
  const { calls } = await simulator.state()
  await provider.load(cell)
  t.equal((await simulator.state()).calls - calls, 1)
  t.strictSame(requests, [
    ['provider_not_sent', 1],
    ['ok', 1],
  ])
  const turns = steps.filter((step, i) => step !== steps[i - 1])
  t.strictSame(turns, ['cold 1/1', 'unsent', 'cold 1/1', 'answered', 'unsent'])
})

t.test('a retry without budget does not close the provider for others', async t => {
  const { budget, steps } = budgetOf(3, inAnHour)
  const { provider } = setUp(t, { retries: 1 }, { budget })
  await simulator.steer({ fault: 'internal-error', times: 1 })
  const limited = { code: 'provider_limited', retryAt: inAnHour }
  await Promise.all(cells(2).map(each => t.rejects(provider.load(each, 'refresh'), limited)))
  t.notMatch(steps.join(), /limited/)
  t.strictSame(steps.slice(-2), ['refresh 1/2', 'unsent'], 'and gives back what is of no use')
})

t.test('an open breaker sends nothing, and then probes with a single point', async t => {
  const { now } = performance
  let passedMs = 0
  t.intercept(performance, 'now', { value: () => now.call(performance) + passedMs })
  const guard = { after: 1, halfOpenAfterMs: 60_000, halfOpenAfterAtMostMs: 60_000 }
  const { provider, requests } = setUp(t, { retries: 0 }, { guard })
  await simulator.steer({ fault: 'internal-error', times: 1 })
  // The cell that opened the circuit is retried with all the others.
  await t.rejects(provider.load(cell), { code: 'provider_failing', retryAt: Number })
  await t.rejects(provider.load(cell), { code: 'provider_circuit_open', retryAt: Number })
  passedMs = 60_000
  const again = (of: Cell): Promise<unknown> =>
    provider.load(of).catch(error => {
      t.equal(error.code, 'provider_circuit_open')
      return again(of)
    })
  await Promise.all(cells(5).map(again))
  t.strictSame(requests.slice(0, 2), [
    ['provider_failing', 1],
    ['ok', 1],
  ])
  t.strictSame(requests.at(-1), ['ok', 4])
})

t.test('a probe asks for as many points as failed in this outage, and not in an earlier one', async t => {
  const guard = { after: 2, halfOpenAfterMs: 30, halfOpenAfterAtMostMs: 30, hasFallback: true }
  const { provider, requests, breaker, loadAll } = setUp(t, { retries: 2 }, { guard })
  const fail = () => Promise.reject(new ProviderError('provider_failing', 'x'))
  const outageOf = async (points: number) => {
    await simulator.steer({ fault: 'internal-error' })
    // As by requests of operators, where no cell fails.
    if (points === 0) await codesOf([breaker.run(fail), breaker.run(fail)])
    await loadAll(cells(points))
    await simulator.steer({ fault: 'none' })
    requests.length = 0
    await until('the circuit is closed', async () => {
      if (breaker.isProbeDue()) await provider.probe(cells(20))
      return breaker.state().state === 'closed'
    })
    const probes = requests.map(([, points]) => points)
    t.strictSame(await loadAll(cells(1)), ['ok'], 'the trial')
    return probes
  }
  t.strictSame(await outageOf(0), [1])
  t.strictSame(await outageOf(3), [1, 3], 'though the circuit opened between two retries')
  t.strictSame(await outageOf(1), [1])
  t.strictSame(await outageOf(2), [1, 2])
  t.strictSame(await outageOf(12), [1, 10], 'and no more than ten')
})

t.test(
  'a probe that finds no room for all that it asks for sends nothing, and gives the rest back',
  async t => {
    const guard = { after: 1, halfOpenAfterMs: 30, halfOpenAfterAtMostMs: 30 }
    const { budget, steps } = budgetOf(4, inAnHour)
    const { provider, requests, breaker, loadAll } = setUp(t, { retries: 0 }, { guard, budget })
    await simulator.steer({ fault: 'internal-error', times: 1 })
    await loadAll(cells(3))
    await until('a probe is due', () => breaker.isProbeDue())
    await provider.probe(cells(5))
    t.strictSame(requests, [['provider_failing', 3]])
    t.strictSame(steps.slice(-4), ['refresh 1/1', 'refresh 0/3', 'unsent', 'unsent'])
  },
)

for (const options of [{}, { maxConcurrent: 3, maxPointsPerRequest: 10 }])
  t.test(`cells that wait for the next window cost one attempt: ${JSON.stringify(options)}`, async t => {
    const { budget, grant, reservations } = budgetOf(0, Date.parse(noon) + 5_000)
    const { provider } = setUp(t, options, { budget })
    const loads: Promise<unknown>[] = []
    for (const each of cells(60)) {
      loads.push(provider.load(each))
      await new Promise(setImmediate)
    }
    t.ok(reservations().length <= 3, `${reservations().length} attempts for 60 cells`)
    t.equal(provider.waiting(), 60)
    grant(60)
    await Promise.all(loads)
  })

t.test('once it is closed it sends and reserves nothing more, and ends when its request has', async t => {
  for (const [fault, outcome] of [
    ['none', 'ok'],
    ['internal-error', 'provider_failing'],
    ['too-much-data', 'provider_too_much'],
  ] as const) {
    const { budget, reservations } = budgetOf(1_000, 0)
    const { provider, requests } = setUp(t, { maxPointsPerRequest: 4 }, { budget })
    await simulator.steer({ hold: true, fault })
    const errors: string[] = []
    for (const each of cells(12)) provider.load(each).catch(({ message }) => errors.push(message))
    await requestIsOut()
    const before = reservations()
    const closed = provider.close()
    provider.load(grid.cellOf(24, 90)).catch(() => {})
    await simulator.steer({ hold: false })
    await closed
    t.strictSame(requests, [[outcome, 4]])
    if (fault === 'too-much-data')
      t.match(errors, Array(4).fill(/^the request was not sent: the gateway stops$/))
    t.strictSame(reservations(), before)
    t.equal(provider.waiting(), 9)
  }
})

t.test('when it has closed, each cell of its last request has its weather', async t => {
  const { provider } = setUp(t)
  await simulator.steer({ hold: true })
  let loaded = 0
  for (const each of cells(100)) void provider.load(each).then(() => ++loaded)
  await requestIsOut()
  const closed = provider.close()
  await simulator.steer({ hold: false })
  await closed
  t.equal(loaded, 100)
})

t.test('a reservation that comes when it is closed is given back', async t => {
  const { budget, steps } = budgetOf(1_000, 0)
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const reserve: typeof budget.reserve = (...given) => gate.then(() => budget.reserve(...given))
  const { provider, requests } = setUp(t, {}, { budget: { reserve } })
  provider.load(cell).catch(() => {})
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
  const closed = provider.close()
  open()
  await closed
  t.strictSame(requests, [])
  t.ok(steps.includes('unsent'), steps.join(', '))
})

t.test('a request that fails in the TLS handshake costs nothing', async t => {
  const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures', name))
  const server = createServer({ key: fixture('localhost.key'), cert: fixture('localhost.crt') })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { budget, steps } = budgetOf(1_000, 0)
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { provider } = providerAt(t, url, { options: { retries: 0 }, budget })
  await t.rejects(provider.load(cell), { code: 'provider_unreachable', message: /certificate/ })
  t.strictSame(steps.slice(0, 2), ['cold 1/1', 'unsent'])
})

t.test('a call whose connections are closed was not sent', async t => {
  const call = createProviderCall(callOptions(simulator.url), { protocol: openMeteo, clock: manualClock() })
  const request = openMeteo.requestFor([cell])
  await call.text(request)
  await call.close()
  const closed = { code: 'provider_not_sent', retryable: true, message: /: its connections are closed$/ }
  await t.rejects(call.text(request), closed)
})
