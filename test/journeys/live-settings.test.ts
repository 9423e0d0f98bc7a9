// Every setting that is declared live takes effect in a running gateway: each proof changes one of them, or a few that only
// show together, and looks at what the gateway then does. Faults, files, signals and load are in config-reload.test.ts.

import t, { type Test } from 'tap'
import { settings } from '../../src/config/tree.ts'
import { effectOf } from '../../src/config/values.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const hour = 3_600_000

/** Proved where files and signals are. */
const elsewhere = [
  ...['server.tls.cert', 'server.tls.key'],
  // In session-tickets.test.ts.
  'server.tls.ticketKey',
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
      env: { ABOHAWA_TEST_PROVIDER__RETRIES: '0', ...env },
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

const exact = { ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0', ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s' }

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

const redis = await testRedis(t)
proof(
  ['provider.budget.perMinute', 'provider.budget.perHour'],
  'more is granted where more is allowed',
  { env: { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '3', ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '6' } },
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
  t.ok(live.length > 15, `${live.length} settings`)
})
