// Without it a provider outage could give weather of the wrong hour, end too early, or flood the log.

import t, { type Test } from 'tap'
import { statusLines } from '../../src/cli/operate/status-text.ts'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { statusReport } from '../../src/operate/reports/status-report.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { runCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const calendar = createCalendar('Asia/Dhaka')

// fresh and stale in hours, hours in a response, when the weather was fetched
const table: [number, number, string, string][] = [
  [1, 12, '48', '2026-11-21T06:07:31Z'],
  [1, 12, '48', '2026-11-21T17:59:59Z'],
  [24, 24, '168', '2026-11-21T18:00:00Z'],
  [24, 24, '168', '2026-11-21T17:59:59Z'],
  [1, 0, '1', '2026-11-21T17:14:59Z'],
]

for (const [fresh, stale, hours, fetched] of table)
  t.test(`fetched at ${fetched}, fresh for ${fresh} h, stale for ${stale} h, ${hours} hours`, async t => {
    const clock = manualClock(fetched)
    await provider.steer({ now: fetched, fault: 'none' })
    const gateway = await startGateway(t, {
      providerUrl: provider.url,
      clock,
      env: {
        ABOHAWA_CACHE__FRESH_FOR: `${fresh}h`,
        ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
        ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s',
        ABOHAWA_CACHE__STALE_FOR: `${stale}h`,
        ABOHAWA_WEATHER__HOURLY_HOURS: hours,
      },
    })
    t.equal((await gateway.get('/weather/district/3026')).status, 200)
    await provider.steer({ fault: 'reset' })
    const end = Date.parse(fetched) + (fresh + stale) * hourMs
    for (const now of [Date.parse(fetched) + hourMs - 1, end - hourMs, end - 1]) {
      clock.set(now)
      const { status, body } = await gateway.get('/weather/district/3026')
      t.equal(status, 200, new Date(now).toISOString())
      t.equal(body.current.time, calendar.localMinute(Math.floor(now / 900_000) * 900_000))
      t.equal(body.hourly.time[0], `${calendar.localMinute(now).slice(0, 13)}:00`)
      t.equal(body.hourly.time.length, Number(hours))
      t.equal(body.daily.time[0], calendar.dayOf(now))
      t.equal(body.daily.time.length, 7)
    }
    clock.set(end)
    t.equal((await gateway.get('/weather/district/3026')).status, 500)
  })

t.test('cache.staleFor can be raised as far as what was fetched reaches, and keeps the cache', async t => {
  const clock = manualClock('2026-11-21T06:00:00Z')
  await provider.steer({ now: '2026-11-21T06:00:00Z', fault: 'none' })
  const store = { ABOHAWA_STORE__PATH: `${t.testdir()}/store.db`, ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0' }
  const start = (staleFor: string) => {
    const env = { ...store, ABOHAWA_CACHE__STALE_FOR: staleFor }
    return startGateway(t, { providerUrl: provider.url, clock, env })
  }
  const places = ['/weather/district/3026', '/weather/coords/22.3/91.8', '/weather/coords/24.9/91.9']
  const statuses = async ({ get }: { get: (path: string) => Promise<{ status: number }> }) =>
    (await Promise.all(places.map(place => get(place)))).map(({ status }) => status)
  const reach = async ({ opsUrl }: { opsUrl: string }) =>
    (await sendRequest(`${opsUrl}/status`)).body.cache.reach

  const first = await start('12h')
  t.strictSame(await statuses(first), [200, 200, 200])
  t.match(await reach(first), { allowedSeconds: (12 + 12) * 3_600 + 60, share: 1 })
  await provider.steer({ fault: 'reset' })
  clock.advance(14 * hourMs)
  t.strictSame(await statuses(first), [500, 500, 500])

  t.equal(await first.set({ 'cache.staleFor': '30h' }), 'applied')
  t.strictSame(await statuses(first), [200, 200, 200], 'at once')
  t.match((await first.get(places[0] ?? '')).headers['cache-status'], /fwd=stale|hit; ttl=-/)
  const { allowedSeconds, share, leastSeconds } = await reach(first)
  t.equal(allowedSeconds, (12 + 30) * 3_600 + 60)
  t.equal(share, 0, 'nothing was fetched that reaches so far')
  t.ok(leastSeconds > 24 * 3_600 && leastSeconds < 27 * 3_600, `${leastSeconds} s`)
  const { stdout } = await runCommand(['status', '--gateway', first.opsUrl], store)
  t.match(
    stdout,
    /expires +at most 42 h after the fetch for 0\.0 % of demand; at least 2\d h.*, as far as it was fetched/,
  )
  await first.close()

  // The settings of the start decide how far is fetched; what was cached under others stays.
  const longer = await start('30h')
  t.strictSame(await statuses(longer), [200, 200, 200], 'after a restart')
  clock.advance(10 * hourMs)
  t.strictSame(await statuses(longer), [200, 200, 200], 'up to its end')
  await until('a cell is fetched again', async () => {
    clock.advance(60_000)
    // The provider's clock must not fall behind: what it sends would then end earlier.
    await provider.steer({ now: new Date(clock.now()).toISOString(), fault: 'none' })
    return /; hit; ttl=\d/.test((await longer.get(places[0] ?? '')).headers['cache-status'] ?? '')
  })
  t.ok((await reach(longer)).share > 0, 'and reaches further')
  const calls = async () => (await provider.state()).calls
  const before = await calls()
  await longer.close()

  const shorter = await start('12h')
  t.match((await shorter.get(places[0] ?? '')).headers['cache-status'], /; hit;/)
  t.equal(await calls(), before, 'what reaches further is read under settings that need less')
})

t.test('a consumer waits only so long for a silent provider, and the next one is served', async t => {
  await provider.steer({ now: '2026-11-21T06:00:00Z', fault: 'none', hold: true })
  const env = { ABOHAWA_TEST_CACHE__WAIT_FOR: '100ms' }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const get = () => gateway.get('/weather/coords/22/89')
  const error = /the weather provider did not answer in time$/
  t.match(await get(), { status: 500, body: { error, code: 'waited_too_long' } })
  await provider.steer({ hold: false })
  await until('the cell is served', async () => (await get()).status === 200)
  t.match((await get()).headers['cache-status'], /hit/)
})

// Of an outage the log has three lines beside those of requests, and the status one at its top while it lasts.
const places = ['302602', '302604', '302605', '302606', '302608']
const seconds = 110

const startLogged = async (t: Test, env: Record<string, string> = {}) => {
  const clock = manualClock()
  await provider.steer({ now: noon, fault: 'none' })
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_CACHE__FRESH_FOR: '10m',
      ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
      ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '100ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '100ms',
      ...env,
    },
  })
  const own = () => gateway.logged.filter(({ msg }) => msg !== 'answered')
  const status = async () => statusReport.parse((await sendRequest(`${gateway.opsUrl}/status`)).body)
  return { clock, gateway, own, status }
}

t.test('an outage that opens the circuit', async t => {
  const { clock, gateway, own, status } = await startLogged(t)
  t.strictSame((await status()).outages, [])
  for (const place of places) t.equal((await gateway.get(`/weather/upazila/${place}`)).status, 200)
  clock.advance(600_000)
  gateway.logged.length = 0
  await provider.steer({ fault: 'internal-error' })
  const seen = { stale: 0, errors: 0 }
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000)
    for (const path of [...places.map(place => `/weather/upazila/${place}`), '/weather/coords/21.5/92']) {
      const { status, headers } = await gateway.get(path)
      if (status === 500) seen.errors += 1
      if (/ttl=-/.test(headers['cache-status'] ?? '')) seen.stale += 1
    }
  }
  await until('the failed refreshes are counted', () => own().length >= 2)
  const told = own().map(({ msg, level }) => `${level} ${msg}`)
  t.strictSame(
    told,
    ['error provider outage started', 'warn provider outage continues'],
    JSON.stringify(own()),
  )
  const report = await status()
  const [open] = report.outages ?? []
  t.hasStrict(report.outages, [{ outage: 'provider', code: 'provider_failing', errors: seen.errors }])
  t.equal(Date.parse(open?.since ?? ''), Date.parse(noon) + 601_000, 'with the first second')
  const [, line] = statusLines(report, null, calendar)
  const stale = open?.stale.toLocaleString('en-US')
  t.strictSame(line, {
    text: `provider outage since 12:10, ${stale} requests answered from stale, ${seen.errors} failed (provider_failing)`,
    tone: 'bad',
  })
  const [begins, minute] = own()
  t.match(begins, { outage: 'provider', code: 'provider_failing', reason: /500/ })
  t.match(minute, { outage: 'provider', seconds: Number, failures: Number, cells: Number })
  t.hasStrict(minute?.worst, { cell: '21.5,92', usableUntil: null })
  t.ok(Number(minute?.seconds) >= 60 && Number(minute?.seconds) <= 62, `${minute?.seconds} s`)

  await provider.steer({ fault: 'none' })
  await until('the outage is over', async () => {
    // The circuit goes by real time, the backoff of a cell by the clock.
    clock.advance(100)
    await gateway.get(`/weather/upazila/${places[0]}`)
    return own().some(({ msg }) => msg === 'provider outage ended')
  })
  const [, , over, ...more] = own()
  t.strictSame([more, (await status()).outages], [[], []])
  t.match(over, { level: 'info', outage: 'provider', failures: Number, causes: { provider_failing: Number } })
  t.ok(Number(over?.seconds) >= seconds - 2, `${over?.seconds} s`)
  t.equal(over?.errors, seen.errors)
  t.ok(Number(over?.stale) >= seen.stale - places.length, `${over?.stale} stale answers, ${seen.stale} seen`)
  t.ok(seen.errors > 100 && seen.stale > 500, `${seen.errors} errors, ${seen.stale} stale`)
})

t.test('single failures are lines of their own, once a minute for each cause', async t => {
  const { clock, gateway, own } = await startLogged(t, {
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
  })
  const [place] = places
  const get = () => gateway.get(`/weather/upazila/${place}`)
  const fail = async () => {
    clock.advance(601_000)
    await provider.steer({ fault: 'internal-error', times: 1 })
    const before = (await provider.state()).calls
    const failures = async () =>
      (await gateway.metric('abohawa_cache_refresh_failures_total{purpose="refresh"}')) ?? 0
    const failed = await failures()
    t.match((await get()).headers['cache-status'], /stale/)
    await until('the refresh has failed', async () => (await failures()) > failed)
    clock.advance(301_000)
    await until(
      'it is well again',
      async () =>
        /hit/.test((await get()).headers['cache-status'] ?? '') &&
        (await provider.state()).calls > before + 1,
    )
  }
  t.equal((await get()).status, 200)
  for (let i = 0; i < 4; i++) await fail()
  const failed = own().filter(({ level }) => level === 'warn' || level === 'error')
  t.equal(failed.length, 4, JSON.stringify(failed))
  const msg = 'refresh failed, keeping the cached weather'
  t.match(failed[0], { code: 'provider_failing', reason: /500/, cell: /^\d/, msg })
})
