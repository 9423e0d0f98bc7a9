// Without it a setting that is called live could have no effect until a restart.

import t, { type Test } from 'tap'
import { settings } from '../../src/config/tree.ts'
import { effectOf } from '../../src/config/values.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const hour = 3_600_000

/** Proved where files and signals are. */
const elsewhere = [
  ...['server.tls.cert', 'server.tls.key'],
  // In session-tickets.test.ts.
  'server.tls.ticketKey',
  // In failover-operators.test.ts.
  'provider.fallbacks',
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
/** A cell that nobody has requested. */
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
const applied = async (t: Test, gateway: TestGateway, changed: Record<string, string>) => {
  const calls = Object.keys(changed).join()
  t.equal(await gateway.set(changed), 'applied', calls)
  const restarts = gateway.logged.filter(({ msg }) => msg === 'settings need a restart')
  t.strictSame(restarts, [], calls)
}

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
    await until('freshness is stretched', async () => (await stretched()) > 3 * hour)
    await applied(t, gateway, { 'cache.freshForAtMost': '2h' })
    t.equal(await stretched(), 2 * hour)
    await applied(t, gateway, { 'provider.budget.perDay': '1000000' })
    t.equal(await stretched(), hour)
    t.equal(await gateway.metric('abohawa_provider_budget_limit{window="day"}'), 1_000_000)
  },
)

/** What is seen at first and after each change; without one it is looked at again. */
type Steps = readonly (readonly [changed: Record<string, string>, seen: unknown])[]

const seen = (
  paths: readonly string[],
  what: string,
  env: Record<string, string>,
  look: (gateway: TestGateway) => Promise<unknown>,
  steps: Steps,
) =>
  proof(paths, what, { env }, async (t, gateway) => {
    for (const [changed, wanted] of steps) {
      if (Object.keys(changed).length > 0) await applied(t, gateway, changed)
      t.strictSame(await look(gateway), wanted, JSON.stringify(changed))
    }
  })
const asFree = ({ get, keys }: TestGateway) => get('/locations?type=division', { key: keys.free ?? '' })

seen(
  ['provider.budget.perMinute', 'provider.budget.perHour'],
  'more is granted where more is allowed',
  { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '3', ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '6' },
  async ({ get }) => (await get(newCell())).status,
  [
    [{}, 200],
    [{ 'provider.budget.perMinute': '600' }, 200],
    // The hour is spent.
    [{}, 500],
    [{ 'provider.budget.perHour': '5000' }, 200],
  ],
)

seen(
  ['provider.budget.reserve'],
  'what is not cold has the rest',
  { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '12', ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.9' },
  async ({ opsUrl }) =>
    (await fetch(`${opsUrl}/provider/v1/forecast?latitude=23&longitude=90&current=temperature_2m`)).status,
  [
    [{}, 429],
    [{ 'provider.budget.reserve': '0' }, 200],
  ],
)

seen(
  ['quota.tiers'],
  'a key has the limit of its tier from the next request on, and what was used before counts',
  {},
  async gateway => {
    const { status, headers } = await asFree(gateway)
    return [status, headers['x-ratelimit-limit']]
  },
  [
    [{}, [200, '100']],
    [{ 'quota.tiers.free': '2' }, [200, '2']],
    [{}, [429, '2']],
    [{ 'quota.tiers.free': '4' }, [200, '4']],
  ],
)

seen(
  ['quota.rates'],
  'a key has the limits of its tier from the next request on',
  {},
  async gateway => {
    const { status, headers } = await asFree(gateway)
    return [status, headers['ratelimit-policy']?.replace(/^"daily";q=100;w=86400/, '')]
  },
  [
    [{}, [200, '']],
    [{ 'quota.rates.free': '{ perMinute: 1 }' }, [200, ', "minute";q=1;w=60']],
    [{}, [429, ', "minute";q=1;w=60']],
    [{ 'quota.rates.free': '{ perSecond: 9 }' }, [200, ', "second";q=9;w=1']],
  ],
)

seen(
  ['quota.notModifiedCost'],
  'a 304 costs so much of a unit',
  {},
  async gateway => {
    const path = '/locations/district/3026'
    const before = await gateway.get(path)
    const again = () => gateway.get(path, { headers: { 'if-none-match': before.headers.etag ?? '' } })
    const [first, second] = [await again(), await again()]
    const left = [before, first, second].map(({ headers }) => Number(headers['x-ratelimit-remaining']))
    return [first.status, (left[0] ?? 0) - (left[2] ?? 0)]
  },
  [
    [{}, [304, 2]],
    [{ 'quota.notModifiedCost': '0' }, [304, 0]],
    [{ 'quota.notModifiedCost': '0.5' }, [304, 1]],
  ],
)

/** Lines of the log for a request. */
const linesOf = async (gateway: TestGateway) => {
  const before = gateway.logged.length
  await asFree(gateway)
  return gateway.logged.length - before
}
seen(['log.level'], 'less is logged, and more again', {}, linesOf, [
  [{}, 1],
  [{ 'log.level': 'error' }, 0],
  [{ 'log.level': 'debug' }, 1],
])
seen(['log.access'], 'requests are logged by it', {}, linesOf, [
  [{}, 1],
  [{ 'log.access': 'false' }, 0],
  [{ 'log.access': 'true' }, 1],
  [{ 'log.access': '0' }, 0],
  [{ 'log.access': '1' }, 1],
])

const origin = 'https://app.example.org'
seen(
  ['server.cors.origins'],
  'another page may read the answers',
  {},
  async ({ get }) =>
    (await get('/locations', { headers: { origin } })).headers['access-control-allow-origin'],
  [
    [{}, undefined],
    [{ 'server.cors.origins': origin }, origin],
    [{ 'server.cors.origins': '' }, undefined],
  ],
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
    t.hasStrict(await load('enterprise'), { status: 500, body: { code: 'key_share_used_up' } })
    t.equal((await load('business')).status, 200)
    await applied(t, gateway, { 'provider.budget.keyShare': '0.4' })
    t.equal((await load('enterprise')).status, 200, 'who was held back may go on at once')
  },
)

for (const [path, reason, hasKey] of [
  ['server.maxConnections', 'connections', true],
  ['server.maxConnectionsPerAddress', 'address', false],
] as const)
  proof([path], 'new ones are closed beyond it', {}, async (t, gateway) => {
    await applied(t, gateway, { [path]: '2' })
    for (let i = 0; i < 4; i++) {
      const raw = await openRaw(t, gateway.apiUrl)
      const key = hasKey ? `x-api-key: ${gateway.keys.enterprise}\r\n` : ''
      raw.send(`GET /api/v1/locations HTTP/1.1\r\nhost: x\r\n${key}\r\n`)
      await raw.answer().catch(() => {})
    }
    t.ok(((await gateway.metric(`abohawa_connections_closed_total{reason="${reason}"}`)) ?? 0) >= 2)
  })

t.test('every live setting has its proof', async t => {
  const live = settings.filter(setting => effectOf(setting) === 'live').map(({ path }) => path.join('.'))
  t.strictSame([...proved].sort(), live.sort())
  t.ok(live.length > 15, `${live.length} settings`)
})
