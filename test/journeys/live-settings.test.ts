// Every setting that is declared live takes effect in a running gateway: each proof changes one of them, or a few that only
// show together, and looks at what the gateway then does. Faults, files, signals and load are in config-reload.test.ts.

import { copyFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { setPublished } from '../../src/catalogue/publication.ts'
import { settings } from '../../src/config/tree.ts'
import { effectOf } from '../../src/config/values.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { testRedis } from '../support/redis-server.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProvider(t)
const hour = 3_600_000
const minute = 60_000

/** Proved where files and signals are. */
const elsewhere = [
  ...['server.tls.cert', 'server.tls.key', 'config.watch', 'config.pollEvery'],
  // In session-tickets.test.ts.
  'server.tls.ticketKey',
  // In workers.test.ts.
  'server.workerTimeout',
]
const proved = new Set(elsewhere)

type Setting = { env?: Record<string, string>; providerUrl?: string }
type Proof = (t: Test, given: TestGateway & { clock: ReturnType<typeof manualClock> }) => Promise<void>

const proof = (
  paths: readonly string[],
  what: string,
  { env = {}, providerUrl = provider.url }: Setting,
  run: Proof,
) => {
  for (const path of paths) proved.add(path)
  t.test(`${paths.join(', ')}: ${what}`, async t => {
    const clock = manualClock()
    await provider.steer({ fault: 'none', hold: false, now: noon, latencyMs: 0, reset: true })
    const gateway = await startGateway(t, {
      providerUrl,
      clock,
      env: { ABOHAWA_PROVIDER__RETRIES: '0', ...env },
    })
    t.teardown(() => provider.steer({ fault: 'none', hold: false }))
    await run(t, { ...gateway, clock })
  })
}

let asked = 0
/** A cell that nobody has asked for. */
const newCell = () => {
  asked += 1
  return `/weather/coords/${(21 + Math.floor(asked / 40) / 10).toFixed(1)}/${(88 + (asked % 40) / 10).toFixed(1)}`
}
type Report = { gateway: { memory: Record<string, string>; lastFailure: Record<string, string> } }
const cellOf = async ({ opsUrl }: TestGateway, path: string): Promise<Report['gateway']> => {
  const of = path.replace('/weather/coords/', '').replace('/', ',')
  return ((await (await fetch(`${opsUrl}/cache/cell?of=${of}`)).json()) as Report).gateway
}
/** The time between two instants of what is cached of a cell. */
const span = async (gateway: TestGateway, path: string, from: string, to: string): Promise<number> => {
  const { memory } = await cellOf(gateway, path)
  return Date.parse(memory[to] ?? '') - Date.parse(memory[from] ?? '')
}
const backoff = async (gateway: TestGateway, path: string): Promise<number> => {
  const { lastFailure } = await cellOf(gateway, path)
  return Date.parse(lastFailure.backoffUntil ?? '') - Date.parse(lastFailure.failedAt ?? '')
}
const reasonIn = ({ logged }: TestGateway): unknown => logged.findLast(({ msg }) => msg === 'failed')?.reason
const lines = ({ logged }: TestGateway): number => logged.filter(({ msg }) => msg === 'answered').length
const applied = async (t: Test, gateway: TestGateway, changed: Record<string, string>) => {
  const calls = Object.keys(changed).join()
  t.equal(await gateway.set(changed), 'applied', calls)
  t.strictSame(
    gateway.logged.filter(({ msg }) => String(msg).startsWith('needs a restart')),
    [],
    calls,
  )
}
const oneRequest = ({ keys }: TestGateway, path: string) =>
  `GET /api/v1${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${keys.enterprise}\r\n\r\n`

const exact = { ABOHAWA_CACHE__FRESH_SPREAD: '0', ABOHAWA_CACHE__REFRESH_AHEAD_FOR: '0s' }

proof(
  ['cache.freshFor', 'cache.staleFor'],
  'what is cached already stays fresh and usable for as long',
  { env: exact },
  async (t, gateway) => {
    const path = newCell()
    await gateway.get(path)
    t.equal(await span(gateway, path, 'fetchedAt', 'freshUntil'), hour)
    await applied(t, gateway, { 'cache.freshFor': '2h', 'cache.staleFor': '3h' })
    t.equal(await span(gateway, path, 'fetchedAt', 'freshUntil'), 2 * hour)
    t.equal(await span(gateway, path, 'freshUntil', 'usableUntil'), 3 * hour)
    gateway.clock.advance(2 * hour - 1)
    t.match((await gateway.get(path)).headers['cache-status'], /; hit; ttl=/)
    gateway.clock.advance(1)
    t.match((await gateway.get(path)).headers['cache-status'], /; fwd=stale;/)
  },
)

proof(
  ['cache.freshSpread', 'cache.refreshAheadFor'],
  'what is cached already is due by the new ones',
  { env: { ABOHAWA_CACHE__FRESH_SPREAD: '1' } },
  async (t, gateway) => {
    const path = newCell()
    await gateway.get(path)
    t.ok((await span(gateway, path, 'fetchedAt', 'dueAt')) > hour)
    t.equal(await span(gateway, path, 'dueAt', 'freshUntil'), minute)
    await applied(t, gateway, { 'cache.freshSpread': '0', 'cache.refreshAheadFor': '30s' })
    t.equal(await span(gateway, path, 'fetchedAt', 'dueAt'), hour)
    t.equal(await span(gateway, path, 'dueAt', 'freshUntil'), minute / 2)
  },
)

proof(
  ['cache.freshForAtMost', 'provider.budget.perDay'],
  'freshness stretches as far as the one allows, and only as the other demands',
  { env: { ...exact, ABOHAWA_PROVIDER__BUDGET__PER_DAY: '12' } },
  async (t, gateway) => {
    const path = newCell()
    await gateway.get(path)
    // The next heartbeat tells how many cells are in demand.
    const stretched = async () => {
      gateway.clock.advance(5_000)
      return span(gateway, path, 'fetchedAt', 'freshUntil')
    }
    await until('freshness is stretched', async () => (await stretched()) > 3 * hour, 20_000, 100)
    await applied(t, gateway, { 'cache.freshForAtMost': '2h' })
    t.equal(await stretched(), 2 * hour)
    await applied(t, gateway, { 'provider.budget.perDay': '1000000' })
    t.equal(await stretched(), hour)
    t.equal(await gateway.metric('abohawa_provider_budget_limit{window="day"}'), 1_000_000)
  },
)

const byRun = await startProvider(t, ['--runs', 'ecmwf'])
proof(
  ['cache.settleFor', 'cache.spreadOver'],
  'weather is due so long after the next run',
  {
    providerUrl: byRun.url,
    env: { ...exact, ABOHAWA_CACHE__FRESHNESS: 'run', ABOHAWA_CACHE__SPREAD_OVER: '0s' },
  },
  async (t, gateway) => {
    const path = newCell()
    await gateway.get(path)
    const before = await span(gateway, path, 'fetchedAt', 'dueAt')
    await applied(t, gateway, { 'cache.settleFor': '25m' })
    t.equal((await span(gateway, path, 'fetchedAt', 'dueAt')) - before, 15 * minute)
    await applied(t, gateway, { 'cache.spreadOver': '6h' })
    t.ok((await span(gateway, path, 'fetchedAt', 'dueAt')) - before > 15 * minute)
  },
)

proof(
  ['cache.demandFor'],
  'a cell that was asked for longer ago is in demand no more',
  {},
  async (t, gateway) => {
    await gateway.get(newCell())
    const wanted = (count: number) => async () => {
      gateway.clock.advance(5_000)
      return (await gateway.metric('abohawa_cache_wanted_cells')) === count
    }
    await until('it is in demand', wanted(1), 20_000, 100)
    gateway.clock.advance(hour)
    await until('and still is after an hour', wanted(1), 20_000, 100)
    await applied(t, gateway, { 'cache.demandFor': '30m' })
    await until('it is in demand no more', wanted(0), 20_000, 100)
  },
)

proof(
  ['cache.prefetch', 'cache.prefetchPlaces'],
  'places are kept warm from now on',
  { env: { ABOHAWA_CACHE__PREFETCH_PLACES: '1' } },
  async (t, gateway) => {
    const warm = () => gateway.metric('abohawa_cache_memory_entries')
    t.equal(await warm(), 0)
    await applied(t, gateway, { 'cache.prefetch': 'population' })
    await until('a place is warm', async () => (await warm()) === 1, 20_000, 30)
    await applied(t, gateway, { 'cache.prefetchPlaces': '50' })
    await until('many are', async () => ((await warm()) ?? 0) > 5, 20_000, 30)
  },
)

proof(
  ['cache.retryAfter', 'cache.retryAfterAtMost'],
  'the next failure backs off by them',
  { env: { ABOHAWA_PROVIDER__BREAKER__AFTER: '100' } },
  async (t, gateway) => {
    await provider.steer({ fault: 'internal-error' })
    const path = newCell()
    const fails = async () => {
      gateway.clock.advance(hour)
      t.equal((await gateway.get(path)).status, 500)
      return backoff(gateway, path)
    }
    const first = await fails()
    t.ok(first >= 10_000 && first <= 15_000, `${first}`)
    await applied(t, gateway, { 'cache.retryAfter': '1h', 'cache.retryAfterAtMost': '1h' })
    t.equal(await fails(), hour)
    await applied(t, gateway, { 'cache.retryAfter': '10s', 'cache.retryAfterAtMost': '30s' })
    t.ok((await fails()) <= 30_000)
  },
)

proof(
  ['provider.refusedFor'],
  'a point that is refused backs off no longer',
  { env: { ABOHAWA_PROVIDER__BREAKER__AFTER: '100' } },
  async (t, gateway) => {
    await provider.steer({ fault: 'bad-request' })
    const path = newCell()
    await gateway.get(path)
    t.ok((await backoff(gateway, path)) >= 10_000)
    await applied(t, gateway, { 'provider.refusedFor': '1s' })
    gateway.clock.advance(hour)
    await gateway.get(path)
    t.ok((await backoff(gateway, path)) <= 1_000)
  },
)

proof(['cache.waitFor'], 'a consumer waits no longer than that', {}, async (t, gateway) => {
  await provider.steer({ hold: true })
  await applied(t, gateway, { 'cache.waitFor': '50ms' })
  t.equal((await gateway.get(newCell())).status, 500)
  t.match(reasonIn(gateway), /nothing was loaded within 50 ms/)
})

const redis = await testRedis(t)
proof(
  ['cache.leaseFor'],
  'the lease of a load lasts so long',
  { env: { ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: `${redis.prefix}lease:` } },
  async (t, gateway) => {
    const raw = new Redis(redis.url)
    t.teardown(() => raw.disconnect())
    await provider.steer({ hold: true })
    await applied(t, gateway, { 'cache.leaseFor': '1m' })
    const answer = gateway.get(newCell())
    await until('the lease is long', async () => {
      const [lease = ''] = await raw.keys(`${redis.prefix}lease:flight:*`)
      return (await raw.pttl(lease)) > 10_000
    })
    await provider.steer({ hold: false })
    t.equal((await answer).status, 200)
  },
)

const failing: readonly (readonly [path: string, fault: string, reason: RegExp])[] = [
  ['provider.timeout', 'hang', /no answer from the provider within 50 ms/],
  ['provider.bodyTimeout', 'stall', /body stood still for 50 ms/],
  ['provider.totalTimeout', 'hang', /not whole within 50 ms/],
]
for (const [path, fault, reason] of failing)
  proof([path], 'the next request is given up after it', {}, async (t, gateway) => {
    await provider.steer({ fault })
    await applied(t, gateway, { [path]: '50ms' })
    t.equal((await gateway.get(newCell())).status, 500)
    t.match(reasonIn(gateway), reason)
  })

// Takes connections and says nothing, so that TLS never begins.
const silent = createServer(socket => socket.on('error', () => {}))
await new Promise<void>(listening => silent.listen(0, '127.0.0.1', listening))
t.teardown(() => silent.close())
const silentAt = silent.address()
proof(
  ['provider.connectTimeout'],
  'the next connection is given up after it',
  { providerUrl: `https://127.0.0.1:${typeof silentAt === 'object' ? silentAt?.port : 0}` },
  async (t, gateway) => {
    await applied(t, gateway, { 'provider.connectTimeout': '50ms' })
    t.equal((await gateway.get(newCell())).status, 500)
    t.match(reasonIn(gateway), /no connection to the provider within 50 ms/)
  },
)

proof(['provider.maxConcurrent'], 'what waits is sent beside what is under way', {}, async (t, gateway) => {
  await provider.steer({ hold: true })
  const inFlight = (count: number) => async () => (await provider.state()).inFlight === count
  const answers = [gateway.get(newCell())]
  await until('one request is out', inFlight(1))
  answers.push(gateway.get(newCell()))
  await until(
    'another cell waits',
    async () => (await gateway.metric('abohawa_provider_waiting_cells')) === 1,
  )
  await applied(t, gateway, { 'provider.maxConcurrent': '2' })
  await until('two requests are out', inFlight(2))
  await provider.steer({ hold: false })
  t.strictSame(
    (await Promise.all(answers)).map(({ status }) => status),
    [200, 200],
  )
})

proof(
  ['provider.maxPointsPerRequest'],
  'cells that miss together travel in such batches',
  {},
  async (t, gateway) => {
    await applied(t, gateway, { 'provider.maxPointsPerRequest': '1' })
    await Promise.all([newCell(), newCell(), newCell()].map(path => gateway.get(path)))
    t.strictSame(
      (await provider.state()).requests.map(({ latitudes }) => latitudes),
      [1, 1, 1],
    )
  },
)

proof(
  ['provider.retries', 'provider.retryDelay'],
  'a failure is repeated so often and so soon',
  {
    env: {
      ABOHAWA_PROVIDER__RETRIES: '0',
      ABOHAWA_PROVIDER__RETRY_DELAY: '1m',
      ABOHAWA_PROVIDER__BREAKER__AFTER: '100',
    },
  },
  async (t, gateway) => {
    await provider.steer({ fault: 'internal-error' })
    await gateway.get(newCell())
    t.equal((await provider.state()).calls, 1)
    // With the delay of before the answer would be that of cache.waitFor, after two calls.
    await applied(t, gateway, { 'provider.retries': '3', 'provider.retryDelay': '1ms' })
    await gateway.get(newCell())
    t.equal((await provider.state()).calls, 5)
  },
)

proof(
  ['provider.breaker.after'],
  'the circuit opens after so many failures',
  { env: { ABOHAWA_PROVIDER__BREAKER__AFTER: '100' } },
  async (t, gateway) => {
    await provider.steer({ fault: 'internal-error' })
    await gateway.get(newCell())
    t.equal(await gateway.metric('abohawa_provider_circuit{state="closed"}'), 1)
    await applied(t, gateway, { 'provider.breaker.after': '2' })
    await gateway.get(newCell())
    t.equal(await gateway.metric('abohawa_provider_circuit{state="open"}'), 1)
  },
)

proof(
  ['provider.breaker.halfOpenAfter', 'provider.breaker.halfOpenAfterAtMost'],
  'an open circuit is probed as soon, and again',
  {
    env: {
      ABOHAWA_PROVIDER__BREAKER__AFTER: '1',
      ABOHAWA_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1h',
      ABOHAWA_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '1h',
    },
  },
  async (t, gateway) => {
    await provider.steer({ fault: 'internal-error' })
    await applied(t, gateway, {
      'provider.breaker.halfOpenAfter': '100ms',
      'provider.breaker.halfOpenAfterAtMost': '100ms',
    })
    // Doubled each time, the ninth would come after 25 s.
    await until(
      'it was probed nine times',
      async () => {
        await gateway.get(newCell())
        return (await provider.state()).calls >= 10
      },
      20_000,
      30,
    )
  },
)

proof(
  ['provider.budget.perMinute', 'provider.budget.perHour'],
  'more is granted where more is allowed',
  {
    env: {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '3',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '6',
    },
  },
  async (t, gateway) => {
    t.equal((await gateway.get(newCell())).status, 200)
    await applied(t, gateway, { 'provider.budget.perMinute': '600' })
    t.equal((await gateway.get(newCell())).status, 200)
    t.equal((await gateway.get(newCell())).status, 500, 'the hour is spent')
    await applied(t, gateway, { 'provider.budget.perHour': '5000' })
    t.equal((await gateway.get(newCell())).status, 200)
  },
)

proof(
  ['provider.budget.reserve'],
  'what is not cold has the rest',
  { env: { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '12', ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.9' } },
  async (t, gateway) => {
    const asOperator = () =>
      fetch(`${gateway.opsUrl}/provider/v1/forecast?latitude=23&longitude=90&current=temperature_2m`)
    t.equal((await asOperator()).status, 429)
    await applied(t, gateway, { 'provider.budget.reserve': '0' })
    t.equal((await asOperator()).status, 200)
  },
)

proof(
  ['provider.budget.keyShare'],
  'beside another key, one has so much less',
  { env: { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '240', ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '0.5' } },
  async (t, gateway) => {
    const load = async (tier: string) => gateway.get(newCell(), { key: gateway.keys[tier] ?? '' })
    t.equal((await load('business')).status, 200)
    // More than nobody has used so far, which are 18 cells six hours into the day.
    for (let i = 0; i < 19; i++) t.equal((await load('enterprise')).status, 200)
    await applied(t, gateway, { 'provider.budget.keyShare': '0.2' })
    t.match(await load('enterprise'), { status: 500, body: { code: 'key_share_used_up' } })
    t.equal((await load('business')).status, 200)
    await applied(t, gateway, { 'provider.budget.keyShare': '0.4' })
    t.equal((await load('enterprise')).status, 200, 'who was held back may go on at once')
  },
)

proof(
  ['provider.budget.outageShare'],
  'so much is set aside of each limit',
  {
    env: {
      ABOHAWA_REDIS__URL: redis.url,
      ABOHAWA_REDIS__PREFIX: `${redis.prefix}aside:`,
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
    },
  },
  async (t, gateway) => {
    const limit = () => gateway.metric('abohawa_provider_budget_limit{window="minute"}')
    t.equal(await limit(), 570)
    await applied(t, gateway, { 'provider.budget.outageShare': '0.5' })
    t.equal(await limit(), 300)
    t.equal((await gateway.get(newCell())).status, 200)
  },
)

const told = await startScriptedProvider(t)
proof(
  ['provider.apiKey'],
  'the next request carries the new one',
  { providerUrl: told.url, env: { ABOHAWA_PROVIDER__API_KEY: 'former-key' } },
  async (t, gateway) => {
    const last = () => JSON.stringify(told.requests.at(-1))
    await gateway.get(newCell())
    t.match(last(), 'former-key')
    await applied(t, gateway, { 'provider.apiKey': 'present-key' })
    await gateway.get(newCell())
    t.match(last(), 'present-key')
    t.notMatch(JSON.stringify(gateway.logged), /(former|present)-key/)
  },
)

proof(
  ['provider.runs.pollEvery'],
  'the runs are looked at as often',
  {
    providerUrl: told.url,
    env: { ABOHAWA_CACHE__FRESHNESS: 'run', ABOHAWA_PROVIDER__RUNS__POLL_EVERY: '1h' },
  },
  async (t, gateway) => {
    const looks = () => told.requests.filter(({ target }) => target.includes('meta.json')).length
    const before = looks()
    await applied(t, gateway, { 'provider.runs.pollEvery': '1s' })
    await until('they were looked at twice', () => looks() >= before + 2)
  },
)

proof(['quota.tiers'], 'a key has the limit of its tier from the next request on', {}, async (t, gateway) => {
  const limit = async () =>
    (await gateway.get('/locations?type=division', { key: gateway.keys.free ?? '' })).headers[
      'x-ratelimit-limit'
    ]
  t.equal(await limit(), '100')
  await applied(t, gateway, { 'quota.tiers.free': '2' })
  t.equal(await limit(), '2')
  const { status } = await gateway.get('/locations?type=division', { key: gateway.keys.free ?? '' })
  t.equal(status, 429, 'what was used before counts')
  await applied(t, gateway, { 'quota.tiers.free': '4' })
  t.equal(await limit(), '4')
})

proof(['log.level'], 'less is logged, and more again', {}, async (t, gateway) => {
  const before = gateway.logged.length
  await applied(t, gateway, { 'log.level': 'error' })
  await gateway.get('/locations?type=division')
  t.equal(gateway.logged.length, before)
  await applied(t, gateway, { 'log.level': 'debug' })
  t.match(gateway.logged.at(-1), { msg: 'configuration applied', changes: ['log.level: error → debug'] })
})

proof(['log.access', 'log.accessShare'], 'requests are logged by them', {}, async (t, gateway) => {
  const linesOf = async () => {
    const before = lines(gateway)
    await gateway.get('/locations?type=division')
    return lines(gateway) - before
  }
  t.equal(await linesOf(), 1)
  await applied(t, gateway, { 'log.access': 'false' })
  t.equal(await linesOf(), 0)
  await applied(t, gateway, { 'log.access': 'true', 'log.accessShare': '0' })
  t.equal(await linesOf(), 0)
  await applied(t, gateway, { 'log.accessShare': '1' })
  t.equal(await linesOf(), 1)
})

const places = join(t.testdir(), 'places.json')
copyFileSync(usualCatalogue, places)
proof(
  ['catalogue.pollEvery'],
  'the file of places is looked at as often',
  { env: { ABOHAWA_CATALOGUE__PATH: places, ABOHAWA_CATALOGUE__POLL_EVERY: '1h' } },
  async (t, gateway) => {
    await setPublished(places, '3026', false, gateway.config.catalogue)
    t.equal((await gateway.get('/weather/district/3026')).status, 200)
    await applied(t, gateway, { 'catalogue.pollEvery': '10ms' })
    await until('the place is gone', async () => (await gateway.get('/weather/district/3026')).status === 404)
  },
)

proof(['server.requestTimeout'], 'a request that does not arrive is given up', {}, async (t, gateway) => {
  await applied(t, gateway, { 'server.requestTimeout': '100ms' })
  const raw = await openRaw(t, gateway.apiUrl)
  raw.send('GET /api/v1/locations HTTP/1.1\r\nhost')
  t.match(await raw.answersToTheEnd(), [{ status: 400 }])
})

proof(
  ['server.keepAliveTimeout'],
  'an idle connection is closed a second after it',
  {},
  async (t, gateway) => {
    const idle = async (path: string) => {
      const raw = await openRaw(t, gateway.apiUrl)
      raw.send(oneRequest(gateway, path))
      const { headers } = await raw.answer()
      return { raw, says: headers.get('keep-alive') }
    }
    for (const path of ['/locations?type=division', '/nowhere'])
      t.equal((await idle(path)).says, 'timeout=75', path)
    await applied(t, gateway, { 'server.keepAliveTimeout': '1500ms' })
    const found = await idle('/nowhere')
    t.equal(found.says, 'timeout=1')
    const { raw, says } = await idle('/locations?type=division')
    t.equal(says, 'timeout=1')
    const from = performance.now()
    t.strictSame(await raw.answersToTheEnd(), [])
    const ms = performance.now() - from
    t.ok(ms > 2_400 && ms < 9_000, `after ${ms} ms`)
  },
)

proof(['server.cors.origins'], 'another page may read the answers', {}, async (t, gateway) => {
  const origin = 'https://app.example.org'
  const readableBy = async () =>
    (await gateway.get('/locations?type=division', { headers: { origin } })).headers[
      'access-control-allow-origin'
    ]
  t.equal(await readableBy(), undefined)
  await applied(t, gateway, { 'server.cors.origins': origin })
  t.equal(await readableBy(), origin)
  await applied(t, gateway, { 'server.cors.origins': '' })
  t.equal(await readableBy(), undefined)
})

proof(['server.maxConnections'], 'new ones are closed beyond it', {}, async (t, gateway) => {
  await applied(t, gateway, { 'server.maxConnections': '2' })
  for (let i = 0; i < 4; i++) {
    const raw = await openRaw(t, gateway.apiUrl)
    raw.send(oneRequest(gateway, '/locations?type=division'))
    await raw.answer().catch(() => {})
  }
  t.ok(((await gateway.metric('abohawa_connections_closed_total{reason="connections"}')) ?? 0) >= 2)
})

proof(['server.maxConnectionsPerAddress'], 'an address gets no more of them', {}, async (t, gateway) => {
  await applied(t, gateway, { 'server.maxConnectionsPerAddress': '2' })
  for (let i = 0; i < 4; i++) {
    const raw = await openRaw(t, gateway.apiUrl)
    raw.send('GET /api/v1/locations HTTP/1.1\r\nhost: x\r\n\r\n')
    await raw.answer().catch(() => {})
  }
  t.equal(await gateway.metric('abohawa_connections_closed_total{reason="address"}'), 2)
})

proof(['server.drainFor'], 'a stop takes as long', {}, async (t, gateway) => {
  await applied(t, gateway, { 'server.drainFor': '700ms' })
  const began = performance.now()
  await gateway.close()
  t.ok(performance.now() - began >= 690)
})

proof(['ops.allowedHosts'], 'the ops listener may be asked by another name', {}, async (t, gateway) => {
  const ask = async () =>
    (await sendRequest(`${gateway.opsUrl}/livez`, { headers: { host: 'ops.example.org' } })).status
  t.equal(await ask(), 403)
  await applied(t, gateway, { 'ops.allowedHosts': 'ops.example.org' })
  t.equal(await ask(), 200)
})

const token = (name: string) => `${name}-0123456789-abcdefghijklmnop`
proof(
  ['ops.token'],
  'the ops listener asks for the new one',
  { env: { ABOHAWA_OPS__TOKEN: token('former') } },
  async (t, gateway) => {
    const statusWith = async (name: string) => {
      const headers = { authorization: `Bearer ${token(name)}` }
      return (await sendRequest(`${gateway.opsUrl}/cache/cell?of=23.8,90.4`, { headers })).status
    }
    t.strictSame([await statusWith('former'), await statusWith('present')], [200, 401])
    await applied(t, gateway, { 'ops.token': token('present') })
    t.strictSame([await statusWith('former'), await statusWith('present')], [401, 200])
  },
)

proof(
  ['status.maxConnections'],
  'the status listener is bounded by it',
  { env: { ABOHAWA_STATUS__PORT: '0' } },
  async (t, gateway) => {
    await applied(t, gateway, { 'status.maxConnections': '8' })
    for (let i = 0; i < 12; i++) await openRaw(t, gateway.statusUrl ?? '')
    await until(
      'some are dropped',
      async () => ((await gateway.metric('abohawa_ops_refused_total{reason="connections"}')) ?? 0) >= 4,
    )
  },
)

proof(
  ['ops.maxConnections', 'ops.requestTimeout'],
  'the ops listener is bounded by them',
  {},
  async (t, gateway) => {
    await applied(t, gateway, { 'ops.maxConnections': '8', 'ops.requestTimeout': '100ms' })
    const slow = await openRaw(t, gateway.opsUrl)
    slow.send('GET /livez HTTP/1.1\r\nhost')
    t.match(await slow.answersToTheEnd(), [{ status: 408, body: /within 100 ms/ }])
    await applied(t, gateway, { 'ops.requestTimeout': '10s' })
    for (let i = 0; i < 12; i++) await openRaw(t, gateway.opsUrl)
    await until('the oldest are closed', async () => {
      const closed = await gateway.metric('abohawa_ops_refused_total{reason="connections"}')
      return (closed ?? 0) >= 4
    })
    await gateway.set({ 'ops.maxConnections': '128' })
  },
)

t.test('every live setting has its proof', async t => {
  const live = settings.filter(setting => effectOf(setting) === 'live').map(({ path }) => path.join('.'))
  t.strictSame(
    live.filter(path => !proved.has(path)),
    [],
  )
  t.strictSame(
    [...proved].filter(path => !live.includes(path)),
    [],
  )
  t.ok(live.length > 45, `${live.length} settings`)
})
