// Without it an outage of the primary upstream could reach consumers, or a fallback could be used or kept wrongly.

import t, { type Test } from 'tap'
import { manualClock, noon } from '../support/manual-clock.ts'
import { type ProviderProcess, startProvider, startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import {
  type Answer,
  type GatewaySetting,
  sendRequest,
  startGateway,
  type TestGateway,
} from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { orderPurge } from './ops-requests.ts'

const [first, second] = await Promise.all([
  startProvider(t, ['--runs', 'none', '--seed', '1']),
  startProvider(t, ['--runs', 'none', '--seed', '2']),
])

const places = ['23.8/90.4', '24.9/91.9', '22.4/91.8', '24.4/88.6', '22.8/89.5', '25.7/89.2']
const pathOf = (place: string) => `/weather/coords/${place}`
const upstreamOf = ({ headers }: Answer) => / upstream=([\w-]+)/.exec(headers['cache-status'] ?? '')?.[1]

// What each of them alone would answer.
const alone = async (provider: ProviderProcess) => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const bodies = await Promise.all(places.map(async place => (await gateway.get(pathOf(place))).body.current))
  return new Map(places.map((place, i) => [place, bodies[i]]))
}
const [ofFirst, ofSecond] = await Promise.all([alone(first), alone(second)])
const weatherOf: Record<string, Map<string, unknown>> = { primary: ofFirst, 'fallback-1': ofSecond }

const fallbacks = (more: object = {}, url = second.url) =>
  JSON.stringify([{ baseUrl: url, budget: { perMinute: null, perHour: null, perDay: null }, ...more }])

const setUp = async (t: Test, { env = {}, ...more }: Partial<GatewaySetting> = {}) => {
  for (const provider of [first, second]) await provider.steer({ fault: 'none', hold: false, reset: true })
  const gateway = await startGateway(t, {
    providerUrl: first.url,
    ...more,
    env: {
      ABOHAWA_PROVIDER__FALLBACKS: fallbacks(),
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '300ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '600ms',
      ...env,
    },
  })
  /** The upstream that a response names, whose weather its body has to be. */
  const ask = async (place: string): Promise<string | undefined> => {
    const answer = await gateway.get(pathOf(place))
    if (answer.status !== 200) return answer.text
    const upstream = upstreamOf(answer)
    t.strictSame(answer.body.current, weatherOf[upstream ?? '']?.get(place), `the weather of ${upstream}`)
    return upstream
  }
  return { gateway, ask }
}
/** A first that is given up early, and a second that a busy machine may delay. The share of a wait has a test of its own. */
const briefFirst = {
  ABOHAWA_TEST_CACHE__WAIT_FOR: '3m',
  ABOHAWA_PROVIDER__TIMEOUT: '500ms',
  ABOHAWA_PROVIDER__FALLBACKS: fallbacks({ timeout: '1m' }),
}
const circuitOf = ({ metric }: TestGateway) => metric('abohawa_provider_circuit{state="closed"}')

t.test('while the first is away the second answers; then the first does again', async t => {
  const { gateway, ask } = await setUp(t)
  t.equal(await ask('23.8/90.4'), 'primary')
  t.equal((await second.state()).calls, 0, 'nobody asks the second while the first answers')
  await first.steer({ fault: 'reset' })
  for (const place of places.slice(1, 4)) t.equal(await ask(place), 'fallback-1')
  t.equal(await ask('23.8/90.4'), 'primary', 'what the first gave stays')
  t.equal(await circuitOf(gateway), 0)

  const { calls } = await first.steer({ fault: 'none' })
  await until('a probe has closed the circuit', async () => (await circuitOf(gateway)) === 1)
  const back = await first.state()
  t.ok(back.calls - calls <= 3, 'by few requests')
  t.equal(back.requests.at(-1)?.latitudes, 1, 'of one point')
  t.equal(await ask('22.8/89.5'), 'primary')
  t.equal(await ask('24.9/91.9'), 'fallback-1', 'what the second gave stays until it is due')
})

/** The first as one that is overloaded: it answers one point, and fails for more. */
const startCrowded = async (t: Test, isOverloaded: () => boolean) => {
  const pointsIn = (target = ''): number =>
    new URL(target, first.url).searchParams.get('latitude')?.split(',').length ?? 0
  const { url, requests } = await startScriptedProvider(t, async ({ url = '' }, response) => {
    if (isOverloaded() && pointsIn(url) > 1) return void response.writeHead(503).end('{}')
    const answer = await fetch(`${first.url}${url}`)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  return { url, points: () => requests.map(({ target }) => pointsIn(target)) }
}

const outagesOn = (gateway: TestGateway, clock: ReturnType<typeof manualClock>) => async () => {
  // The status is made anew after five seconds.
  clock.advance(6_000)
  return (await sendRequest(`${gateway.apiUrl}/status.json`)).body.outages
}

t.test('an outage begins when no upstream loads, and ends with weather of any', async t => {
  const clock = manualClock()
  const { gateway, ask } = await setUp(t, { clock, env: { ABOHAWA_SERVER__STATUS_PAGE: 'true' } })
  const outages = outagesOn(gateway, clock)
  await first.steer({ fault: 'reset' })
  for (const place of places.slice(0, 3)) t.equal(await ask(place), 'fallback-1')
  t.strictSame(await outages(), [])
  const ofOperators = async () => (await sendRequest(`${gateway.opsUrl}/status`)).body
  t.match(await ofOperators(), {
    outages: [],
    instances: [{ circuit: /open/, providerOutage: null, outages: [] }],
  })
  const { text } = await sendRequest(`${gateway.opsUrl}/readyz`)
  t.match(text, /circuit (?:half-)?open.*, fallback-1 loads/)
  t.hasStrict(
    gateway.logged.filter(({ msg }) => msg === 'upstream circuit opened'),
    [{ level: 'warn', upstream: 'primary', code: 'provider_broke_off' }],
  )
  clock.advance(5 * 3_600_000)
  const since = new Date(clock.now() - (clock.now() % 60_000)).toISOString()
  await second.steer({ fault: 'minutely-limit' })
  t.equal((await gateway.get(pathOf(places[3] ?? ''))).status, 500)
  t.strictSame(await outages(), [{ of: 'weather', since }], 'and not when the first went away')
  t.match(await ofOperators(), {
    outages: [{ outage: 'provider' }],
    instances: [{ providerOutage: String, outages: [{ outage: 'provider' }] }],
    upstreams: [{ inUse: false }, { inUse: false }],
  })
  t.equal(await gateway.metric('abohawa_upstream_in_use'), -1)
  await second.steer({ fault: 'none' })
  clock.advance(2 * 60_000)
  t.equal(upstreamOf(await gateway.get(pathOf(places[4] ?? ''))), 'fallback-1')
  t.strictSame(await outages(), [])
  clock.advance(60_000)
  const [today] = (await sendRequest(`${gateway.apiUrl}/status.json`)).body.days
  t.ok(today.outage_minutes.weather <= 3, String(today.outage_minutes.weather))
})

t.test('a probe of which nobody gets weather does not end an outage', async t => {
  let isOverloaded = true
  const crowded = await startCrowded(t, () => isOverloaded)
  const { gateway, ask } = await setUp(t, { providerUrl: crowded.url })
  await second.steer({ fault: 'reset' })
  const coldReads = async (from: number) =>
    (await gateway.get(`/weather?places=coords/${places[from]},coords/${places[from + 1]}`)).status
  t.strictSame([await coldReads(0), await coldReads(2)], [500, 500])
  const told = () => gateway.logged.flatMap(({ outage, msg }) => (outage === 'provider' ? [msg] : []))
  const { outages } = (await sendRequest(`${gateway.opsUrl}/status`)).body
  t.hasStrict(outages, [{ outage: 'provider' }])
  await until('two probes got one point', () => crowded.points().filter(points => points === 1).length >= 2)
  t.strictSame((await sendRequest(`${gateway.opsUrl}/status`)).body.outages[0]?.since, outages[0].since)
  t.strictSame(
    told().filter(msg => msg !== 'provider outage has another cause'),
    ['provider outage started'],
  )
  isOverloaded = false
  await until('the circuit is closed', async () => (await circuitOf(gateway)) === 1)
  t.equal(await ask('25.7/89.2'), 'primary')
  t.equal(told().at(-1), 'provider outage ended')
})

t.test('the line of odd values names the upstream that gave them', async t => {
  const { gateway } = await setUp(t)
  await first.steer({ fault: 'odd-values' })
  t.equal(upstreamOf(await gateway.get(pathOf(places[0] ?? ''))), 'primary')
  const lines = gateway.logged.filter(({ msg }) => msg === 'odd values left out')
  t.ok(lines.length > 0)
  t.strictSame(new Set(lines.map(({ upstream }) => upstream)), new Set(['primary']))
})

t.test('refusals of the second among good loads of it are no outage', async t => {
  const clock = manualClock()
  const { gateway, ask } = await setUp(t, { clock })
  await first.steer({ fault: 'reset' })
  for (const place of places.slice(0, 2)) t.equal(await ask(place), 'fallback-1')
  for (const place of places.slice(2, 5)) {
    await second.steer({ fault: 'bad-request' })
    t.equal((await gateway.get(pathOf(place))).status, 500)
    await second.steer({ fault: 'none' })
    clock.advance(11 * 60_000)
    t.equal((await gateway.get(pathOf(place))).status, 200)
  }
  t.strictSame((await sendRequest(`${gateway.opsUrl}/status`)).body.outages, [])
})

for (const fault of [
  'wrong-offset',
  'all-null',
  'empty',
  'cut-off',
  'hang',
  'overloaded',
  'unauthorized',
  'daily-limit',
])
  t.test(`${fault} of the first: every cold cell is answered by the second within the wait`, async t => {
    const { ask } = await setUp(t, fault === 'hang' ? { env: briefFirst } : {})
    await first.steer({ fault })
    t.strictSame(
      await Promise.all(places.map(ask)),
      places.map(() => 'fallback-1'),
    )
  })

t.test('of calls that hang in the first in turn, two take time from the second', async t => {
  const inTurn = { ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '1', ABOHAWA_PROVIDER__MAX_CONCURRENT: '1' }
  // No probe comes after them.
  const noProbe = {
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1h',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '1h',
  }
  const { ask } = await setUp(t, { env: { ...briefFirst, ...inTurn, ...noProbe } })
  await first.steer({ fault: 'hang' })
  t.strictSame(
    await Promise.all(places.map(ask)),
    places.map(() => 'fallback-1'),
  )
  t.equal((await first.state()).calls, 2)
})

t.test(
  'a point that the first refuses is tried at the second, and not again at the first for a while',
  async t => {
    const clock = manualClock()
    const { gateway, ask } = await setUp(t, { clock })
    await first.steer({ fault: 'bad-request' })
    t.equal(await ask('23.8/90.4'), 'fallback-1')
    await first.steer({ fault: 'none' })
    t.equal(await circuitOf(gateway), 1, 'it says nothing of the first')
    t.equal(await ask('24.9/91.9'), 'primary', 'and nothing of other points')
    const { calls } = await first.state()
    await orderPurge(gateway.opsUrl, 'all', true)
    t.equal(await ask('23.8/90.4'), 'fallback-1')
    t.equal((await first.state()).calls, calls)
    clock.advance(11 * 60_000)
    await orderPurge(gateway.opsUrl, 'all', true)
    t.equal(upstreamOf(await gateway.get(pathOf('23.8/90.4'))), 'primary')
  },
)

t.test('where all upstreams fail a request fails as before, and what is stale is served', async t => {
  const clock = manualClock()
  const { gateway, ask } = await setUp(t, { clock, env: { ABOHAWA_TEST_CACHE__RETRY_AFTER: '1s' } })
  t.equal(await ask('23.8/90.4'), 'primary')
  for (const provider of [first, second]) await provider.steer({ fault: 'internal-error' })
  const { status, headers } = await gateway.get(pathOf('24.9/91.9'))
  t.equal(status, 500)
  t.ok(Number(headers['retry-after']) >= 1)
  clock.advance(2 * 3_600_000)
  const stale = await gateway.get(pathOf('23.8/90.4'))
  t.match(stale, { status: 200, headers: { 'cache-status': /fwd=stale; .*detail=memory; upstream=primary/ } })
  await second.steer({ fault: 'none' })
  await until(
    'a probe has found the second',
    async () => (await gateway.get(pathOf('22.4/91.8'))).status === 200,
  )
})

t.test('a first that answers one point and fails for more is not used before it answers as many', async t => {
  let isOverloaded = true
  const { url: providerUrl, points: probes } = await startCrowded(t, () => isOverloaded)
  const { gateway, ask } = await setUp(t, { providerUrl })
  const list = (...places: string[]) => places.map(place => `coords/${place}`).join()
  for (const [one = '', other = ''] of [places.slice(0, 2), places.slice(2, 4)])
    t.equal((await gateway.get(`/weather?places=${list(one, other)}`)).status, 200)
  await until('two probes failed', () => probes().length >= 6)
  t.strictSame(probes().slice(0, 6), [2, 2, 1, 2, 1, 2])
  t.equal(await circuitOf(gateway), 0)
  t.equal(await ask('22.8/89.5'), 'fallback-1')
  isOverloaded = false
  await until('the circuit is closed', async () => (await circuitOf(gateway)) === 1)
  t.equal(await ask('25.7/89.2'), 'primary')
})

/** Gateways on one Redis, which expires what is old by the machine's clock: everything is at the machine's instant. */
const startFleet = async (t: Test, size: number, env: Record<string, string> = {}) => {
  const redis = await testRedis(t)
  const now = Date.now()
  for (const provider of [first, second]) await provider.steer({ now: new Date(now).toISOString() })
  t.teardown(async () => {
    for (const provider of [first, second]) await provider.steer({ now: noon })
  })
  const onRedis = { ...redis.env, ...env }
  const clock = manualClock(now)
  const each = Array.from({ length: size }, async () => (await setUp(t, { clock, env: onRedis })).gateway)
  return Promise.all(each)
}

t.test(
  'the budget of each is kept over the fleet, and the second is used where the first has no room',
  async t => {
    const own = { reserve: 0, keyShare: 1 }
    const fleet = await startFleet(t, 2, {
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '6',
      ABOHAWA_TEST_PROVIDER__OUTAGE_SHARE: '0',
      ABOHAWA_PROVIDER__BUDGET__RESERVE: '0',
      ABOHAWA_PROVIDER__FALLBACKS: fallbacks({
        budget: { perMinute: null, perHour: null, perDay: 9, ...own },
      }),
    })
    const found: (string | undefined)[] = []
    for (const [i, place] of places.entries())
      found.push(upstreamOf((await fleet[i % 2]?.get(pathOf(place))) as Answer))
    t.strictSame(found, ['primary', 'primary', 'fallback-1', 'fallback-1', 'fallback-1', undefined])
    t.equal((await first.state()).weight, 6)
    t.equal((await second.state()).weight, 9)
  },
)

t.test('a limit that the first reported closes its budget, and it is asked no more', async t => {
  const { gateway, ask } = await setUp(t)
  await first.steer({ fault: 'daily-limit' })
  t.equal(await ask('23.8/90.4'), 'fallback-1')
  const { calls } = await first.state()
  for (const place of places.slice(1)) t.equal(await ask(place), 'fallback-1')
  t.equal((await first.state()).calls, calls)
  t.ok(((await gateway.metric('abohawa_provider_limited_until_timestamp_seconds')) ?? 0) > 0)
})

const shared = (t: Test) => ({ ABOHAWA_STORE__PATH: `${t.testdir()}/shared.db` })

t.test('a list that was reordered, shortened or made keeps the cache over a restart', async t => {
  const env = shared(t)
  await first.steer({ fault: 'none' })
  // As a gateway without fallbacks leaves it, of the first release too.
  const plain = await startGateway(t, { providerUrl: first.url, env })
  await plain.get(pathOf('23.8/90.4'))
  await plain.close()
  const both = await setUp(t, { env })
  await first.steer({ fault: 'reset' })
  t.equal(await both.ask('23.8/90.4'), 'primary', 'what was there without fallbacks is of the first')
  t.equal(await both.ask('24.9/91.9'), 'fallback-1')
  await both.gateway.close()

  const away = async () => {
    for (const provider of [first, second]) await provider.steer({ fault: 'reset' })
  }
  const reordered = await setUp(t, {
    providerUrl: second.url,
    env: {
      ...env,
      ABOHAWA_PROVIDER__FALLBACKS: fallbacks({ name: 'own' }, first.url),
    },
  })
  await away()
  Object.assign(weatherOf, { own: ofFirst, primary: ofSecond })
  t.teardown(() => Object.assign(weatherOf, { primary: ofFirst }))
  t.equal(await reordered.ask('23.8/90.4'), 'own')
  t.equal(await reordered.ask('24.9/91.9'), 'primary')
  await reordered.gateway.close()

  const alone = await setUp(t, { env: { ...env, ABOHAWA_PROVIDER__FALLBACKS: '' } })
  await away()
  const { status, headers } = await alone.gateway.get(pathOf('23.8/90.4'))
  t.equal(status, 200)
  t.notMatch(headers['cache-status'], /upstream/, 'one upstream has no name')
})

t.test('of the entries of two upstreams the newer one is read, and a hard purge removes both', async t => {
  const clock = manualClock()
  const env = shared(t)
  const one = await setUp(t, { env, clock })
  t.equal(await one.ask('23.8/90.4'), 'primary')
  clock.advance(2 * 3_600_000)
  await first.steer({ fault: 'reset' })
  await one.gateway.get(pathOf('23.8/90.4'))
  await until('it was refreshed', async () =>
    /fallback-1/.test(upstreamOf(await one.gateway.get(pathOf('23.8/90.4'))) ?? ''),
  )
  await one.gateway.close()
  const next = await setUp(t, { env, clock })
  const { headers } = await next.gateway.get(pathOf('23.8/90.4'))
  t.match(headers['cache-status'], /hit; ttl=\d+; detail=memory; upstream=fallback-1/)
  const { body } = await sendRequest(`${next.gateway.opsUrl}/cache/cell?of=23.8,90.4`)
  t.hasStrict(body, {
    shared: { entry: { upstream: 'fallback-1' } },
    gateway: { memory: { upstream: 'fallback-1' } },
  })
  t.match(await orderPurge(next.gateway.opsUrl, '23.8,90.4', true), { removed: 2 })
})

// Before the run of six hours ago becomes available, at 12:30.
const soon = '2026-11-21T12:29:40Z'

t.test('an entry is made stale by the runs of its own upstream alone', async t => {
  const [one, other] = await Promise.all([
    startProviderHere(t, { runs: 'ecmwf', seed: 1 }, soon),
    startProviderHere(t, { runs: 'ecmwf', seed: 2 }, soon),
  ])
  const clock = manualClock(soon)
  const gateway = await startGateway(t, {
    providerUrl: one.url,
    clock,
    env: {
      ABOHAWA_CACHE__FRESHNESS: 'run',
      ABOHAWA_PROVIDER__FALLBACKS: fallbacks({}, other.url),
      ABOHAWA_TEST_PROVIDER__RUNS__POLL_EVERY: '50ms',
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_CACHE__SETTLE_FOR: '10s',
      ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s',
      ABOHAWA_TEST_CACHE__SPREAD_OVER: '0s',
    },
  })
  await gateway.get(pathOf('23.8/90.4'))
  await one.steer({ fault: 'reset' })
  t.equal(upstreamOf(await gateway.get(pathOf('24.9/91.9'))), 'fallback-1')
  const facts = async (of: string) =>
    (await sendRequest(`${gateway.opsUrl}/cache/cell?of=${of}`)).body.gateway.memory
  // The first has a newer run now. The second stands still, and has none; a minute later its runs would be assumed.
  clock.advance(40_000)
  await one.steer({ now: new Date(clock.now()).toISOString() })
  await until('the first has a newer run', async () => (await facts('23.8,90.4')).state === 'stale')
  t.hasStrict(await facts('24.9,91.9'), { state: 'fresh', upstream: 'fallback-1' })
  await other.steer({ now: new Date(clock.now()).toISOString() })
  await until('so has the second', async () => (await facts('24.9,91.9')).state === 'stale')
})
