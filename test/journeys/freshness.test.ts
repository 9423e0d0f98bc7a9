// Without it weather could be reloaded too late, too often, or beyond the budget, and a restart could begin cold.

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createGrid } from '../../src/weather/cell.ts'
import type { SimulatorOptions } from '../../tools/provider/simulator.ts'
import { manualClock } from '../support/manual-clock.ts'
import type { ProviderProcess } from '../support/provider.ts'
import { startProviderHere } from '../support/provider.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const place = '/weather/district/3026'
const statusOf = async (gateway: TestGateway, path = place): Promise<string> =>
  (await gateway.get(path)).headers['cache-status'] ?? ''
const metricOf = async (gateway: TestGateway, name: string): Promise<number> =>
  (await gateway.metric(name)) ?? Number.NaN

/** A provider and a clock that stand at one instant and are moved together. */
const together = async (t: Test, start: string, options: SimulatorOptions = {}) => {
  const provider = await startProviderHere(t, { runs: 'none', ...options })
  const clock = manualClock(start)
  const move = async (instant: string) => {
    clock.set(instant)
    await provider.steer({ now: instant })
  }
  await move(start)
  return { provider, clock, move }
}
const callsOf = async (provider: ProviderProcess) => (await provider.state()).calls

const byRun = {
  ABOHAWA_CACHE__FRESHNESS: 'run',
  ABOHAWA_TEST_CACHE__SPREAD_OVER: '0s',
  ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s',
  ABOHAWA_TEST_PROVIDER__RUNS__POLL_EVERY: '1s',
  // In which the newest run is read.
  ABOHAWA_TEST_CACHE__WARM_FOR: '1m',
}
/** By age, at exact instants. */
const byAge = (refreshAheadFor: string) => ({
  ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
  ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: refreshAheadFor,
})
const knows = (gateway: TestGateway, run: string) =>
  until(
    `the run of ${run} is known`,
    async () =>
      (await metricOf(gateway, 'abohawa_provider_run_available_timestamp_seconds')) ===
      Date.parse(run) / 1000,
  )
const fortyPoints = Array.from(
  { length: 40 },
  (_, i) => `/weather/coords/${21 + (i % 20) / 10}/${89 + Math.floor(i / 20)}`,
)

t.test('by run: weather is fresh until a newer run has settled, and then is fetched once', async t => {
  const { provider, clock, move } = await together(t, '2026-11-21T08:00:00Z', { runs: 'ecmwf' })
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env: byRun })
  const readiness = (await sendRequest(`${gateway.opsUrl}/readyz`)).body
  t.equal(readiness.detail.run, '2026-11-21T00:00:00.000Z, available 2026-11-21T06:30:00.000Z')
  t.match(await statusOf(gateway), /fwd=miss/)
  // The run of 06:00 is published at 12:30 and settles at 12:40.
  await move('2026-11-21T12:20:00Z')
  t.match(await statusOf(gateway), /hit; ttl=1200; detail=memory/, 'four hours old and fresh')
  await move('2026-11-21T12:39:00Z')
  await knows(gateway, '2026-11-21T12:30:00Z')
  t.match(await statusOf(gateway), /hit; ttl=60; detail=memory/)
  t.equal(await callsOf(provider), 1)
  await move('2026-11-21T12:40:00Z')
  t.match(await statusOf(gateway), /fwd=stale; (collapsed; )?ttl=0; detail=memory/)
  await until('the weather is fresh again', async () => /; hit; ttl=\d+; /.test(await statusOf(gateway)))
  t.equal(await callsOf(provider), 2)
  await move('2026-11-21T18:20:00Z')
  t.match(await statusOf(gateway), /; hit; /)
  t.equal(await callsOf(provider), 2)
})

t.test('a provider that accepts a connection and says nothing keeps no gateway from being ready', async t => {
  const silent = await startScriptedProvider(t, () => {})
  const gateway = await startGateway(t, {
    providerUrl: silent.url,
    env: {
      ABOHAWA_CACHE__FRESHNESS: 'run',
      ABOHAWA_TEST_CACHE__WARM_FOR: '50ms',
      ABOHAWA_TEST_CACHE__WAIT_FOR: '50ms',
      ABOHAWA_PROVIDER__TIMEOUT: '2m',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '2s',
    },
  })
  const { status, body } = await sendRequest(`${gateway.opsUrl}/readyz`)
  t.equal(status, 200)
  t.equal(body.detail.run, 'unknown, freshness goes by age')
})

t.test('a cell in demand is fetched before it turns stale, and nobody gets stale weather', async t => {
  const { provider, clock, move } = await together(t, '2026-11-21T06:00:00Z')
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env: byAge('2m') })
  await gateway.get(place)
  await gateway.get('/weather/coords/26/92')
  await move('2026-11-21T06:30:00Z')
  t.match(await statusOf(gateway), /; hit; /)
  await move('2026-11-21T07:01:00Z')
  await until('the provider got three requests', async () => (await callsOf(provider)) >= 3)
  const [, , refreshed] = (await provider.state()).requests
  t.strictSame(
    [refreshed?.query.latitude, refreshed?.latitudes],
    ['23.7', 1],
    'the cell without further demand is dropped',
  )
  await until('the weather is new', async () => /; hit; ttl=3[67]\d\d; /.test(await statusOf(gateway)))
  t.equal(await callsOf(provider), 3)
})

t.test('the most populous places are loaded without demand, and stay fresh', async t => {
  const { provider, clock, move } = await together(t, '2026-11-21T06:00:00Z')
  const env = { ABOHAWA_CACHE__PREFETCH_PLACES: '30', ...byAge('2m') }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const { points: none } = await provider.state()
  const places = (await gateway.get('/locations?type=division&limit=8&lang=en')).body.results
  const ordered = JSON.parse(readFileSync(usualCatalogue, 'utf8')).locations.toSorted(
    (a: { population: number }, b: { population: number }) => b.population - a.population,
  )
  const grid = createGrid(gateway.config.cache.cellDegrees)
  const cells = new Set<string>()
  for (const { latitude, longitude } of ordered.slice(0, 30)) cells.add(grid.cellOf(latitude, longitude).id)
  await until(
    'all are in memory',
    async () => (await metricOf(gateway, 'abohawa_cache_memory_entries')) === cells.size,
  )
  const { points, calls } = await provider.state()
  t.equal(points, cells.size, 'each cell once')
  t.ok(calls <= 2, 'in full batches')
  for (const { id } of places) t.match(await statusOf(gateway, `/weather/division/${id}`), /; hit; /)
  t.equal((await provider.state()).points, points, `and ${none} before`)
  await move('2026-11-21T07:01:30Z')
  await until('all were requested again', async () => (await provider.state()).points >= 2 * points)
  t.equal((await provider.state()).points, 2 * points, 'each once more')
})

t.test('a restarted gateway has the cells in demand in memory before it is ready', async t => {
  const { provider, clock } = await together(t, '2026-11-21T06:00:00Z')
  const env = { ABOHAWA_STORE__PATH: `${t.testdir()}/shared.db` }
  const first = await startGateway(t, { providerUrl: provider.url, clock, env })
  await Promise.all(fortyPoints.map(point => first.get(point)))
  // A heartbeat writes the demand to the store.
  clock.advance(6_000)
  await until('all are wanted', async () => (await metricOf(first, 'abohawa_cache_wanted_cells')) >= 40)
  await first.close()
  const calls = await callsOf(provider)
  const second = await startGateway(t, { providerUrl: provider.url, clock, env })
  t.equal(await metricOf(second, 'abohawa_cache_memory_entries'), 40)
  for (const point of fortyPoints) t.match(await statusOf(second, point), /; hit; ttl=\d+; detail=memory/)
  t.equal(await callsOf(provider), calls)
})

t.test('nothing is sent beyond the budget: cold cells get a retry-after, warm ones are served', async t => {
  const { provider, clock, move } = await together(t, '2026-11-21T06:00:30Z', { limits: 'free' })
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '30',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
      ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.5',
      ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '1',
      ...byAge('0s'),
    },
  })
  const points = Array.from({ length: 14 }, (_, i) => `/weather/coords/${22 + i / 10}/90`)
  const answers = await Promise.all(points.map(point => gateway.get(point)))
  const refused = answers.filter(({ status }) => status === 500)
  t.equal(answers.filter(({ status }) => status === 200).length, 10, 'ten cells of weight 3')
  t.equal(refused.length, 4)
  t.match(refused[0]?.body.error, /the gateway has used up its quota at the weather provider$/)
  t.equal(refused[0]?.headers['retry-after'], '32', 'the rest of the minute and the margin')
  t.equal((await provider.state()).weight, 30)
  t.match(
    (await sendRequest(`${gateway.opsUrl}/readyz`)).body.detail.provider,
    /^circuit closed, 30 of 30 this minute, 30 of 5000 this hour/,
  )

  await move('2026-11-21T06:01:03Z')
  // Which ones were refused depends on the order in which they came.
  const cold = points[answers.findIndex(({ status }) => status === 500)] ?? ''
  t.equal((await gateway.get(cold)).status, 200)
  t.equal((await provider.state()).refused, 0, 'the provider never had to refuse')
})
