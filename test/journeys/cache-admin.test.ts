// Without it operators could read a wrong state of a cell, or purge too much, too little, or at one gateway only.

import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { manualClock } from '../support/manual-clock.ts'
import { runCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { coldCache } from './dashboard-page.ts'

const provider = await startProviderHere(t)
// For the tests of one gateway that leave it as others can have it.
const plain = await startGateway(t, { providerUrl: provider.url })
const dhaka = '/weather/district/3026'
const elsewhere = '/weather/coords/22.3/91.8'

const explain = async (opsUrl: string, of = 'district/3026') =>
  (await sendRequest(`${opsUrl}/cache/cell?of=${of}`)).body
const post = (opsUrl: string, body: string, type = 'application/json') =>
  fetch(`${opsUrl}/cache/purge`, { method: 'POST', body, headers: { 'content-type': type } })
const purge = async (gateway: TestGateway, scope: string, hard?: boolean) => {
  const answer = await post(gateway.opsUrl, JSON.stringify({ scope, hard }))
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}
const statusOf = async (gateway: TestGateway, path = dhaka) =>
  (await gateway.get(path)).headers['cache-status'] ?? ''

t.test('a cell is explained before a fetch, after it, after a failure and after a restart', async t => {
  await provider.steer({ fault: 'none' })
  const clock = manualClock()
  const env = { ...coldCache, ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const text = async () => {
    const args = ['cache', 'show', 'district/3026', '--gateway', gateway.opsUrl]
    const { code, stdout, stderr } = await runCommand(args, env)
    t.hasStrict({ code, stderr }, { code: 0, stderr: '' })
    return stdout
  }

  const { places, placeCount, areas, ...before } = await explain(gateway.opsUrl)
  t.hasStrict(places, [
    { type: 'division', id: '30' },
    { type: 'district', id: '3026', name_en: 'Dhaka', name_bn: 'ঢাকা' },
    { type: 'upazila' },
  ])
  t.ok(places.length > 10)
  t.equal(places.length, placeCount, 'all of them')
  t.strictSame(
    areas.map(({ type, id }: { type: string; id: string }) => `${type}/${id}`).slice(-2),
    ['district/3026', 'division/30'],
    'the places with others below them, narrowest first',
  )
  t.ok(areas.length > 2 && areas[0].type === 'upazila')
  t.strictSame(before, {
    of: 'district/3026',
    place: { type: 'district', id: '3026', name: 'Dhaka' },
    cell: { id: '23.7,90.4', latitude: 23.7, longitude: 90.4 },
    cellDegrees: 0.1,
    at: '2026-11-21T06:00:00.000Z',
    shared: { kind: 'embedded', entry: null, fault: null },
    gateway: {
      ...{ memory: null, slices: null, freshness: 'age', newestRun: null, stretch: 1, loading: false },
      ...{ lastRequestedAt: null, lastFailure: null },
    },
  })
  t.match(await text(), /Nothing is in the memory of the gateway\.\n {2}Nothing is in the shared tier/)

  await provider.steer({ hold: true })
  const slow = gateway.get(dhaka)
  await until('the cell is being loaded', async () => (await explain(gateway.opsUrl)).gateway.loading)
  await provider.steer({ hold: false })
  const { current } = (await slow).body
  clock.advance(60_000)
  const facts = {
    state: 'fresh',
    fetchedAt: '2026-11-21T06:00:00.000Z',
    run: null,
    dueAt: '2026-11-21T07:00:00.000Z',
    freshUntil: /^2026-11-21T07:0\d:/,
    usableUntil: /^2026-11-21T19:0\d:/,
    purged: null,
  }
  const after = await explain(gateway.opsUrl)
  t.match(after, {
    shared: { entry: facts },
    gateway: { memory: facts, loading: false, lastRequestedAt: facts.fetchedAt, lastFailure: null },
  })
  const { slices } = after.gateway
  t.hasStrict(slices, {
    quarterHours: { from: '2026-11-21T05:00:00.000Z' },
    hours: { from: '2026-11-19T18:00:00.000Z' },
    days: { from: '2026-11-20', to: '2026-11-30', count: 11 },
    now: {
      time: '2026-11-21T06:00:00.000Z',
      temperature_2m: current.temperature_2m,
      precipitation: current.precipitation,
      weather_code: current.weather_code,
    },
  })
  const { from, to, count } = slices.quarterHours
  t.equal(Date.parse(to) - Date.parse(from), count * 900_000)
  t.ok(after.shared.entry.bytes < after.gateway.memory.bytes, 'each tier reports its own size')
  const shown = await text()
  for (const line of [
    /^ {2}source +the gateway at http:\/\/127\.0\.0\.1:\d+$/m,
    /^ {2}fetched +2026-11-21 12:00:00, 60 s ago +2026-11-21 12:00:00, 60 s ago$/m,
    /^ {2}size +[\d,]+ bytes +[\d,]+ bytes$/m,
  ])
    t.match(shown, line)

  await provider.steer({ fault: 'internal-error' })
  clock.advance(2 * 3_600_000)
  t.match(await statusOf(gateway), /fwd=stale/)
  await until('the refresh has failed', async () => (await explain(gateway.opsUrl)).gateway.lastFailure)
  const failed = await explain(gateway.opsUrl)
  t.match(failed.gateway, {
    memory: { state: 'stale' },
    lastFailure: {
      code: 'provider_failing',
      message: /^the provider answered 500/,
      failedAt: '2026-11-21T08:01:00.000Z',
      attempts: 1,
    },
  })
  t.ok(Date.parse(failed.gateway.lastFailure.backoffUntil) > clock.now())
  t.match(await text(), /last error +2026-11-21 14:01:00, now\n +provider_failing: .*\n +not tried again/)

  await gateway.close()
  await provider.steer({ fault: 'none' })
  const again = await startGateway(t, { providerUrl: provider.url, clock, env })
  t.hasStrict(await explain(again.opsUrl), {
    shared: { entry: { state: 'stale', fetchedAt: facts.fetchedAt } },
    gateway: { memory: null, lastRequestedAt: null, lastFailure: null },
  })
  t.match(await statusOf(again), /detail=embedded|detail=shared/)
  t.ok((await explain(again.opsUrl)).gateway.memory, 'taken into memory with the first answer')
})

t.test('a soft purge makes an answer stale and starts a reload, a hard one makes it a miss', async t => {
  await provider.steer({ fault: 'none' })
  const gateway = plain
  await gateway.get(dhaka)
  await gateway.get(elsewhere)
  const calls = async () => (await provider.state()).calls
  const before = await calls()

  t.strictSame(await purge(gateway, 'district/3026'), {
    status: 200,
    body: {
      kind: 'soft',
      of: 'district/3026',
      place: { type: 'district', id: '3026', name: 'Dhaka' },
      scope: { cell: '23.7,90.4' },
      cells: 1,
      removed: 0,
      store: 'embedded',
    },
  })
  const purgedAs = async () => (await explain(gateway.opsUrl)).gateway.memory.purged
  t.equal(await purgedAs(), 'soft', 'in force with the response')
  t.hasStrict(await explain(gateway.opsUrl), {
    shared: { entry: { state: 'stale', purged: 'soft' } },
    gateway: { memory: { state: 'stale' } },
  })
  t.match(await statusOf(gateway), /fwd=stale/)
  await until('the cell is reloaded', async () => (await purgedAs()) !== 'soft')
  t.match(await statusOf(gateway), /hit; .*detail=memory/)
  t.equal((await calls()) - before, 1)

  t.hasStrict(await purge(gateway, '23.5,90,24,90.8', true), {
    body: { kind: 'hard', scope: { box: { south: 23.5, north: 24 } }, cells: 54, removed: 1 },
  })
  await until('the cell has left memory', async () => !(await explain(gateway.opsUrl)).gateway.memory)
  t.equal((await explain(gateway.opsUrl)).shared.entry, null)
  t.match(await statusOf(gateway), /fwd=miss/)

  t.match(await statusOf(gateway, elsewhere), /hit; .*detail=memory/, 'outside the box nothing changed')
  t.equal((await calls()) - before, 2)

  t.match(await purge(gateway, 'all', true), { body: { scope: { all: true }, cells: 3_976, removed: 2 } })
  const left = async () => !(await explain(gateway.opsUrl, '22.3,91.8')).gateway.memory
  await until('the other cell has left memory', left)
  t.match(await statusOf(gateway, elsewhere), /fwd=miss/)
})

t.test('an area is a place and all below it, and its purge reaches two gateways', async t => {
  const own = await startProviderHere(t, undefined, null)
  const { env } = await testRedis(t)
  // Redis drops entries by its own clock. One after the other: each begins a log that it finds empty with a purge of all.
  const first = await startGateway(t, { providerUrl: own.url, clock: systemClock, env })
  const second = await startGateway(t, { providerUrl: own.url, clock: systemClock, env })
  const below = (await first.get('/locations?type=upazila&district_id=3026')).body.results
  const paths = [
    dhaka,
    ...below.slice(0, 3).map(({ id }: { id: string }) => `/weather/upazila/${id}`),
    elsewhere,
  ]
  for (const gateway of [first, second])
    for (const path of paths) t.equal((await gateway.get(path)).status, 200)
  const stateIn = async ({ opsUrl }: TestGateway, path: string) => {
    const of = path.replace(/^\/weather\/(coords\/)?/, '').replace(elsewhere.slice(16), '22.3,91.8')
    return (await explain(opsUrl, of)).gateway.memory?.purged
  }
  const order = async (more: object) => {
    const answer = await post(first.opsUrl, JSON.stringify({ scope: 'district/3026', area: true, ...more }))
    return { status: answer.status, body: (await answer.json()) as Record<string, number> }
  }
  const price = await order({ dryRun: true })
  t.hasStrict(price, { status: 200, body: { kind: 'soft', refusedNow: 0 } })
  const { cells = 0, cached = 0, weight } = price.body
  t.ok(cells > cached && cached > 1, `${cached} of ${cells} cells are cached`)
  t.equal(weight, cached * 3)
  t.equal(await stateIn(second, dhaka), null, 'a price purges nothing')

  t.hasStrict(await order({}), {
    status: 200,
    body: { kind: 'soft', scope: { area: 'district/3026' }, place: { name: 'Dhaka' }, cells, removed: 0 },
  })
  for (const path of paths.slice(0, 4)) {
    t.equal(await stateIn(first, path), 'soft', path)
    await until('it is in force', async () => (await stateIn(second, path)) === 'soft')
  }
  for (const gateway of [first, second]) t.equal(await stateIn(gateway, elsewhere), null)
  const line = second.logged.findLast(({ msg }) => msg === 'cache purged')
  t.hasStrict(line, { kind: 'soft', scope: { area: 'district/3026', cells } })
  t.hasStrict(await order({ hard: true }), { body: { kind: 'hard', removed: cached } })
  t.hasStrict(await order({ dryRun: true, hard: true }), {
    body: { kind: 'hard', cells, cached: 0, weight: 0 },
  })
})

t.test('an invalid target is 400 with one sentence, and purges nothing', async t => {
  await provider.steer({ fault: 'none' })
  const gateway = plain
  await gateway.get(dhaka)
  const purges = () => gateway.logged.filter(({ msg }) => msg === 'cache purged').length
  const before = purges()
  for (const [query, error] of [
    ['', /^of is required, such as /],
    ['?of=1,2&of=3,4', /^of must be given only once$/],
    ['?of=53,9', /^the latitude must be from 20 to 27 \(Bangladesh\), got 53$/],
  ] as const) {
    const answer = await sendRequest(`${gateway.opsUrl}/cache/cell${query}`)
    t.match(answer, { status: 400, body: { error } }, query)
  }
  for (const [body, error] of [
    ['', /^the body must be JSON such as .*, got none$/],
    ['{', /^the body can't be parsed; it must be JSON such as/],
    ['{"hard":true}', /^the body must be .*, got \{"hard":true\}$/],
    ['{"scope":"all","soft":true}', /^the body must be .*"soft":true\}$/],
    ['{"scope":"union/1"}', /^the union "1" was not found or is not published$/],
    ['{"scope":"all","area":true}', /^the area must be a place such as district\/3026, got "all"$/],
  ] as const) {
    const answer = await post(gateway.opsUrl, body)
    t.equal(answer.status, 400, body)
    t.match(await answer.json(), { error })
  }
  const form = await post(gateway.opsUrl, '{"scope":"all"}', 'text/plain')
  t.equal(form.status, 400)
  t.hasStrict(await form.json(), { error: 'content-type must be application/json, got text/plain' })
  t.equal((await explain(gateway.opsUrl)).gateway.memory.purged, null)
  t.equal(purges(), before)
})
