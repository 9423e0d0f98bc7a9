// Without it one key that requests new cells could take the provider's budget and the queue from all others.

import t, { type Test } from 'tap'
import { statusLines } from '../../src/cli/operate/status-text.ts'
import { createCalendar, minuteMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const budget = 'ABOHAWA_PROVIDER__BUDGET__'
// Six hours of the provider's day are over, by a clock near that of Redis, which expires keys by its own.
const start = Math.floor(Date.now() / 86_400_000) * 86_400_000 + 6 * 3_600_000

// One for all, whose clock each test sets back.
const provider = await startProvider(t)

const setUp = async (
  t: Test,
  { count = 1, env = {} }: { count?: number; env?: Record<string, string> } = {},
) => {
  const clock = manualClock(start)
  await provider.steer({ now: new Date(start).toISOString(), reset: true })
  const redis = count > 1 ? await testRedis(t) : undefined
  const shared = redis ? redis.env : {}
  const gateways: TestGateway[] = []
  for (let i = 0; i < count; i++)
    gateways.push(await startGateway(t, { providerUrl: provider.url, clock, env: { ...shared, ...env } }))
  const advance = async (ms: number) => {
    clock.advance(ms)
    await provider.steer({ now: new Date(clock.now()).toISOString() })
  }
  return { clock, gateways, gateway: gateways[0] as TestGateway, advance }
}

let asked = 0
/** The path of a cell that nobody has requested. */
const newCell = (): string => {
  asked += 1
  return `/weather/coords/${(20.05 + (asked % 69) / 10).toFixed(2)}/${(87.55 + Math.floor(asked / 69) / 10).toFixed(2)}`
}
const load = async (gateway: TestGateway, tier: string, cells: number, key = gateway.keys[tier] ?? '') => {
  const answers = await Promise.all(Array.from({ length: cells }, () => gateway.get(newCell(), { key })))
  return {
    loaded: answers.filter(({ status }) => status === 200).length,
    refused: answers.filter(({ status }) => status !== 200),
  }
}

t.test('beside another key, one has a quarter of the day; the rest is there for the others', async t => {
  const { gateway } = await setUp(t, { env: { [`${budget}PER_DAY`]: '240' } })
  t.equal((await load(gateway, 'business', 1)).loaded, 1)
  const greedy = await load(gateway, 'enterprise', 40)
  t.equal(greedy.loaded, 20, 'a quarter of 80 cells')
  for (const { status, body, headers } of greedy.refused) {
    t.strictSame([status, body.code], [500, 'key_share_used_up'])
    t.ok(Number(headers['retry-after']) > 60, 'when the day has gone on for long enough, or is over')
  }
  const others = await load(gateway, 'business', 12)
  t.equal(others.loaded, 12)
  t.equal((await load(gateway, 'free', 1)).loaded, 1, 'a third key too')
  t.equal((await load(gateway, 'enterprise', 10)).loaded, 0, 'still none for the first')
  t.equal(
    await gateway.metric('abohawa_provider_key_share_used_up_total{urgency="cold"}'),
    30,
    'each refusal is counted',
  )
  t.equal(await gateway.metric('abohawa_provider_top_key_share'), 0.25)
  const { body: status } = await sendRequest(`${gateway.opsUrl}/status`)
  const { enterprise = '', business = '', free = '' } = gateway.keyIds
  t.strictSame(status.top.keys, [
    { keyId: enterprise, requests: 50, cellsLoaded: 20, shareOfDay: 0.25 },
    { keyId: business, requests: 13, cellsLoaded: 13, shareOfDay: 0.1625 },
    { keyId: free, requests: 1, cellsLoaded: 1, shareOfDay: 0.0125 },
  ])
  const lines = statusLines(status, gateway.opsUrl, createCalendar('Asia/Dhaka')).map(({ text }) => text)
  t.equal(
    lines.at(-1),
    `  loads   ${enterprise} 20 cells, 25.0 % of the day; ${business} 13 cells, 16.3 % of the day; ${free} 1 cell, 1.3 % of the day`,
  )
  await until('the count of cells is written', async () => {
    const usage = await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)
    return usage.cellsLoadedToday === 20
  })
})

t.test('alone, a key may spend the day but for its last part, which newcomers have', async t => {
  const { gateway } = await setUp(t, { env: { [`${budget}PER_DAY`]: '600' } })
  const { loaded, refused } = await load(gateway, 'enterprise', 200)
  t.equal(loaded, 190, 'all but half of the reserve')
  t.equal(refused[0]?.body.code, 'key_share_used_up')
  t.equal((await load(gateway, 'business', 2)).loaded, 2)
  t.equal((await load(gateway, 'free', 2)).loaded, 2)
  const { loaded: more, refused: last } = await load(gateway, 'business', 30)
  t.ok(more < 10, `${more}: little, of which there is some for others`)
  t.equal(last[0]?.body.code, 'key_share_used_up')
  t.equal((await load(gateway, 'starter', 1)).loaded, 1)
})

t.test('a fleet shares: what one gateway loaded for a key counts at the other', async t => {
  const { gateways } = await setUp(t, { count: 2, env: { [`${budget}PER_DAY`]: '240' } })
  const [one, two] = gateways as [TestGateway, TestGateway]
  t.equal((await load(two, 'business', 1)).loaded, 1)
  const greedy = [one, two].map(gateway => load(gateway, 'enterprise', 30, one.keys.enterprise))
  const [here, there] = await Promise.all(greedy)
  // A quarter of what is left when a twentieth of the day is set aside: 57 of 228, at 3 a cell.
  t.equal((here?.loaded ?? 0) + (there?.loaded ?? 0), 19)
  t.equal((await load(one, 'business', 5)).loaded, 5)
  t.equal((await load(two, 'business', 5)).loaded, 5)
})

t.test('a cell that two keys want is loaded for the one whose share is not used up', async t => {
  const { gateways } = await setUp(t, { count: 2, env: { [`${budget}PER_DAY`]: '480' } })
  const [one, two] = gateways as [TestGateway, TestGateway]
  await load(two, 'business', 1)
  await load(one, 'enterprise', 48)
  const greedyKey = one.keys.enterprise ?? ''
  const otherKey = two.keys.business ?? ''
  for (let i = 0; i < 20; i++) {
    const path = newCell()
    const [greedy, here, there] = await Promise.all([
      one.get(path, { key: greedyKey }),
      one.get(path, { key: otherKey }),
      two.get(path, { key: otherKey }),
    ])
    t.strictSame([here.status, there.status], [200, 200])
    t.ok(
      greedy.status === 200 || greedy.body.code === 'key_share_used_up',
      'it may share in what another loads',
    )
  }
})

t.test('stale cells of one key are refreshed within its share, and the others’ too', async t => {
  const env = { ABOHAWA_CACHE__FRESH_FOR: '30m', ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s' }
  const { gateway, advance } = await setUp(t, { env })
  const [key = '', otherKey = ''] = [gateway.keys.enterprise, gateway.keys.business]
  const [first = '', second = '', ...paths] = Array.from({ length: 62 }, newCell)
  const readAll = () => Promise.all(paths.map(path => gateway.get(path, { key })))
  await readAll()
  const readOwn = (path: string) => gateway.get(path, { key: otherKey })
  await Promise.all([readOwn(first), readOwn(second)])
  await gateway.set({ 'provider.budget.perHour': '300' })
  // Five minutes of an hour are over, and all is stale.
  await advance(65 * minuteMs)
  await provider.steer({ reset: true })
  const refreshed = async (cells: number) =>
    until(`${cells} cells are refreshed`, async () => (await provider.state()).points === cells)
  await readOwn(first)
  await refreshed(1)
  t.ok(
    (await readAll()).every(({ status }) => status === 200),
    'stale weather is served',
  )
  await refreshed(1 + 25)
  t.match((await readOwn(second)).headers['cache-status'], /fwd=stale/)
  await refreshed(1 + 25 + 1)
  t.ok((await readAll()).every(({ status }) => status === 200))
  t.equal((await provider.state()).points, 27, 'a quarter of 100 for the one, what it wants for the other')
  t.ok(((await gateway.metric('abohawa_provider_key_share_used_up_total{urgency="refresh"}')) ?? 0) > 30)
})

t.test('a new cell of another key is in the next request, whatever waits for the first', async t => {
  const { gateway } = await setUp(t)
  await load(gateway, 'business', 1)
  await provider.steer({ hold: true, reset: true })
  const greedy = load(gateway, 'enterprise', 80)
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
  const path = newCell()
  const other = gateway.get(path, { key: gateway.keys.business ?? '' })
  const [, , , latitude, longitude] = path.split('/')
  const cell = `${gateway.opsUrl}/cache/cell?of=${latitude},${longitude}`
  await until('it is being loaded', async () => /"loading":true/.test(await (await fetch(cell)).text()))
  await provider.steer({ hold: false })
  const { status, headers } = await other
  t.equal(status, 200)
  const { requests } = await provider.state()
  const pointsOf = ({ latitude = '', longitude = '' }: Record<string, string>): string[] => {
    const longitudes = longitude.split(',')
    return latitude.split(',').map((each, i) => `"${each},${longitudes[i]}"`)
  }
  const sent = requests.findIndex(({ query }) =>
    pointsOf(query).some(point => headers['cache-status']?.includes(`key=${point}`)),
  )
  t.equal(sent, 1, 'the request after the one that was under way')
  t.ok(
    requests.every(({ latitudes }) => latitudes <= 26),
    'beside others a request has a quarter of its points for one key',
  )
  t.equal((await greedy).loaded, 80)
})
