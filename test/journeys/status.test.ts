// Without it `/status`, `/cells` and `/search` could show figures that differ from what was sent.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { statusLines } from '../../src/cli/operate/status-text.ts'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import { statusReport } from '../../src/operate/reports/status-report.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { orderPurge } from './ops-requests.ts'

const provider = await startProvider(t)
const dhaka = '/weather/district/3026'
const timeLeft = 'abohawa_cache_time_to_first_expiry_seconds'

const start = async (t: Test, env: Record<string, string> = {}) => {
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const ops = (path: string) => sendRequest(`${gateway.opsUrl}${path}`)
  const status = async () => statusReport.parse((await ops('/status')).body)
  /** The end of the running ten seconds. */
  const step = async () => {
    clock.advance(10_000)
    const end = new Date(Math.floor(clock.now() / 10_000) * 10_000).toISOString()
    await until('the step is in the history', async () => (await status()).history?.endsAt === end)
  }
  return { clock, gateway, ops, status, step }
}

t.test('top keys and demand are known after a restart, and the shared tier serves', async t => {
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'), ABOHAWA_TEST_CACHE__WARM_FOR: '5s' }
  const { gateway, status } = await start(t, env)
  for (const place of ['3026', '2015', '3033'])
    t.equal((await gateway.get(`/weather/district/${place}`)).status, 200)
  const free = { key: gateway.keys.free ?? '' }
  for (let i = 0; i < 80; i++) await gateway.get('/locations?type=division', free)
  const near = [{ keyId: gateway.keyIds.free, subscriber: 'Test', tier: 'free', used: 80, limit: 100 }]
  t.strictSame((await status()).keysNearLimit, near)
  await gateway.close()

  const next = await start(t, env)
  const after = await next.status()
  t.strictSame(after.keysNearLimit, near)
  t.hasStrict(after.top?.keys, [{ keyId: gateway.keyIds.free, requests: 80 }])
  t.equal(after.cache?.entries, 3, 'the shared tier had them')
  t.ok(Date.parse(after.provider?.firstErrorAt ?? '') > Date.parse(after.at), 'nobody asked here yet')
  await next.gateway.get('/locations?type=division', free)
  t.match((await next.status()).keysNearLimit, [{ used: 81 }], 'once, as it is counted since')
  await orderPurge(next.gateway.opsUrl, 'district/3026', true)
  await next.gateway.close()

  const third = await start(t, env)
  const missed = await third.status()
  t.match(missed, { cache: { entries: 2, wantedCells: 3 } })
  t.equal(missed.provider?.firstErrorAt, missed.at)
  t.ok((await third.gateway.metric(timeLeft)) ?? 0, 'two are cached')
})

t.test('the figures are those of what was sent', async t => {
  const { gateway, status, step } = await start(t)
  const before = await status()
  t.hasStrict(before, {
    instances: [{ isSelf: true, phase: 'ready', pid: process.pid, requestsPerSecond: null }],
    provider: { circuit: 'closed', lastSuccessAt: null, lastFailure: null, firstErrorAt: null },
    budget: { shared: true, windows: [], stretch: 1 },
    cache: { entries: 0, counts: { fresh: 0, stale: 0, failed: 0 } },
    store: { kind: 'embedded', isUp: true, fault: null },
    config: { fault: null, needsRestart: [], differs: [] },
    certificate: null,
    keysNearLimit: [],
    top: { places: [], keys: [] },
  })
  for (let i = 0; i < 8; i++) t.equal((await gateway.get(dhaka)).status, 200)
  t.equal((await gateway.get('/weather/district/9')).status, 404)
  for (let i = 0; i < 85; i++) await gateway.get('/locations?type=division', { key: gateway.keys.free ?? '' })
  await step()
  const after = await status()
  t.match(after, {
    instances: [{ requestsPerSecond: 9.4, hitShare: 0.875, configHash: after.config?.hash }],
    provider: { lastSuccessAt: /Z$/ },
    cache: { entries: 1, counts: { fresh: 1 } },
    keysNearLimit: [{ keyId: gateway.keyIds.free, subscriber: 'Test', tier: 'free', used: 85, limit: 100 }],
    top: {
      places: [{ type: 'district', id: '3026', name_en: 'Dhaka', name_bn: 'ঢাকা', requests: 8 }],
      keys: [
        { keyId: gateway.keyIds.free, requests: 85, cellsLoaded: 0 },
        { keyId: gateway.keyIds.enterprise, requests: 9, cellsLoaded: 1, shareOfDay: null },
      ],
    },
  })
  t.equal(after.cache?.counts.absent, (before.cache?.counts.absent ?? 0) - 1)
  const { history } = after
  t.equal(history?.requestsPerSecond.at(-1), 9.4)
  t.equal(history?.errorsPerSecond.at(-1), 0)
  t.strictSame(
    [history?.hitShare.memory.at(-1), history?.hitShare.shared.at(-1), history?.hitShare.provider.at(-1)],
    [0.875, 0, 0.125],
  )
  t.ok((history?.p50.at(-1) ?? 0) > 0 && (history?.p99.at(-1) ?? 0) >= (history?.p50.at(-1) ?? 0))
  await step()
  t.match((await status()).instances, [{ requestsPerSecond: 0, hitShare: 0.875 }])
})

t.test('the forecast of the budget follows what is spent', async t => {
  const { gateway, clock, status } = await start(t, { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '100' })
  for (const point of ['21.1/89.1', '22.1/89.1', '23.1/89.1', '24.1/89.1'])
    t.equal((await gateway.get(`/weather/coords/${point}`)).status, 200)
  const { budget } = await status()
  t.hasStrict(budget.windows, [{ name: 'day', limit: 100, used: 12, resetsAt: '2026-11-22T00:00:00.000Z' }])
  t.equal(budget.windows[0]?.exhaustedAt, null, '12 in six hours are not 100 in a day')
  await provider.steer({ now: new Date(clock.now()).toISOString() })
  for (let i = 0; i < 18; i++)
    await gateway.get(`/weather/coords/25.${Math.floor(i / 9)}/${88 + (i % 9) / 5}`)
  const [day] = (await status()).budget.windows
  t.equal(day?.used, 66)
  // 34 are left, at 66 in the six hours since midnight.
  t.equal(day?.exhaustedAt, new Date(clock.now() + Math.ceil((34 * 6 * 3_600_000) / 66)).toISOString())
})

t.test('a cell in demand that no tier holds makes the first error now', async t => {
  const away = { ABOHAWA_TEST_PROVIDER__RETRIES: '0' }
  const { gateway, clock, status } = await start(t, away)
  const places = ['district/3026', 'district/2015', 'district/3033'].map(place => `/weather/${place}`)
  const calendar = createCalendar('Asia/Dhaka')
  const isNow = async () => {
    const report = await status()
    const text = statusLines(report, gateway.opsUrl, calendar).map(line => line.text)
    return {
      isAtOnce: report.provider?.firstErrorAt === report.at,
      isTold: text.some(line => /if it stays away +consumers get errors now/.test(line)),
    }
  }
  const now = { isAtOnce: true, isTold: true }
  const left = () => gateway.metric(timeLeft)
  const purge = async (scope: string) => {
    await orderPurge(gateway.opsUrl, scope, true)
    await until('the purge is applied', async () => gateway.logged.some(line => line.msg === 'cache purged'))
    gateway.logged.length = 0
  }
  for (const place of places) t.equal((await gateway.get(place)).status, 200)
  t.match(await isNow(), { isAtOnce: false, isTold: false })

  await provider.steer({ fault: 'internal-error' })
  await purge('district/3026')
  t.equal((await gateway.get('/weather/district/3026')).status, 500)
  t.strictSame(await isNow(), now, 'one of three is purged, and could not be loaded')
  await provider.steer({ fault: 'none' })
  clock.advance(10 * 60_000)
  await until('it is served again', async () => (await gateway.get('/weather/district/3026')).status === 200)
  t.match(await isNow(), { isAtOnce: false, isTold: false })

  await provider.steer({ fault: 'internal-error' })
  t.equal((await gateway.get('/weather/district/6091')).status, 500)
  t.strictSame(await isNow(), now, 'a cell that was never cached')
  t.ok(((await left()) ?? 0) > 3600, 'which does not hide what runs out')
  await provider.steer({ fault: 'none' })
  await purge('all')
  t.strictSame(await isNow(), now, 'everything is purged')
  t.equal(await left(), 0)
})

t.test('cells are fresh, stale or failed, and the first error is known beforehand', async t => {
  const { gateway, clock, ops, status } = await start(t, {
    ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '1',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1h',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '1h',
  })
  await gateway.get(dhaka)
  const cell = async () => {
    const { body } = await ops('/cells')
    t.equal(body.cellDegrees, 0.1)
    return body.cells.find(({ id }: { id: string }) => id === '23.7,90.4')
  }
  t.hasStrict(await cell(), { latitude: 23.7, longitude: 90.4, state: 'fresh', ageSeconds: 0, demand: 1 })
  const { firstErrorAt } = (await status()).provider ?? {}
  t.equal(firstErrorAt, new Date(clock.now() + 3_600_000 + 60_000 + 12 * 3_600_000).toISOString())
  clock.advance(30 * 60_000)
  t.equal(
    await gateway.metric(timeLeft),
    (Date.parse(firstErrorAt ?? '') - clock.now()) / 1000,
    'as the metric has it',
  )
  t.hasStrict(await cell(), { state: 'fresh', ageSeconds: 1_800, demand: 0.5 })
  clock.advance(90 * 60_000)
  await until('it is stale', async () => (await cell()).state === 'stale')

  await provider.steer({ fault: 'internal-error', times: 1 })
  await gateway.get(dhaka)
  const failed = await until('the failure is known', async () => {
    const report = await status()
    return report.provider?.lastFailure && report
  })
  t.match(failed.provider, {
    circuit: 'open',
    retryAt: /Z$/,
    lastFailure: { code: 'provider_failing', at: new Date(clock.now()).toISOString(), message: /500/ },
    firstErrorAt,
  })
  t.hasStrict(await cell(), { state: 'failed' })
  t.match(failed.cache?.counts, { failed: 1, stale: 0 })
  await provider.steer({ fault: 'none' })
})

t.test('the certificate that is served has its days left', async t => {
  const [cert, key] = ['crt', 'key'].map(end => join(import.meta.dirname, `../fixtures/localhost.${end}`))
  const { clock, status } = await start(t, {
    ABOHAWA_SERVER__TLS__CERT: cert ?? '',
    ABOHAWA_SERVER__TLS__KEY: key ?? '',
  })
  const end = new X509Certificate(readFileSync(cert ?? '')).validToDate.getTime()
  const calendar = createCalendar('Asia/Dhaka')
  t.equal((await status()).certificate?.expiresAt, new Date(end).toISOString())
  for (const [leftMs, sentence, tone] of [
    [20 * utcDayMs, 'expires in 20 days', undefined],
    [12 * utcDayMs, 'expires in 12 days', 'warn'],
    [-3 * 3_600_000, 'expired 3 h ago', 'bad'],
  ] as const) {
    clock.set(end - leftMs)
    const line = statusLines(await status(), null, calendar).find(({ text }) => /^ {2}certificate/.test(text))
    t.match(line?.text, new RegExp(`^  certificate +${sentence}$`))
    t.equal(line?.tone, tone, sentence)
  }
})

t.test('a refresh loads one cell whatever is cached, and says how that went', async t => {
  const { gateway, clock } = await start(t, { ABOHAWA_TEST_PROVIDER__RETRIES: '0' })
  const refresh = (of: string) => sendRequest(`${gateway.opsUrl}/cache/refresh${of}`, { method: 'POST' })
  const { calls } = await provider.state()
  await gateway.get(dhaka)
  clock.advance(60_000)
  const { status, body } = await refresh('?of=district/3026')
  t.equal(status, 200)
  t.hasStrict(body, {
    cell: { id: '23.7,90.4' },
    gateway: { memory: { fetchedAt: new Date(clock.now()).toISOString() }, lastFailure: null },
  })
  t.equal((await provider.state()).calls, calls + 2)
  await provider.steer({ fault: 'internal-error', times: 1 })
  t.hasStrict(await refresh('?of=23.71,90.41'), {
    status: 200,
    body: { gateway: { memory: { state: 'fresh' }, lastFailure: { code: 'provider_failing' } } },
  })
  await provider.steer({ fault: 'none' })

  t.match(await refresh('?of=all'), { status: 400, body: { error: /^the target must be .*, got "all"$/ } })
})

t.test('a search finds places of all levels, in both languages', async t => {
  const { ops } = await start(t)
  const found = async (query: string) => (await ops(`/search?${query}`)).body.places
  t.hasStrict(await found('q=dhaka&limit=2'), [
    { type: 'division', id: '30', name_en: 'Dhaka', name_bn: 'ঢাকা', cell: '23.7,90.4' },
    { type: 'district', id: '3026' },
  ])
  t.hasStrict(await found(`q=${encodeURIComponent('সাভার')}&limit=1`), [{ type: 'upazila', name_en: 'Savar' }])
  t.equal((await found('q=a')).length, 8)
  t.strictSame(await found('q=xyxyxyxy'), [])
  for (const [query, sentence] of [
    ['', /^q must have 1 to 100 characters .*, got none$/],
    [`q=${'a'.repeat(101)}`, /^q must have .*, got "a+…"$/],
    ['q=a&limit=51', /^limit must be an integer from 1 to 50, got "51"$/],
  ] as const)
    t.match(await ops(`/search?${query}`), { status: 400, body: { error: sentence } }, query)
})
