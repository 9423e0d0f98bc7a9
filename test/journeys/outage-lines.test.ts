// A provider that fails for 110 seconds is three lines of the log beside those of requests: the cause, the minute, the end; and
// a line at the top of `abohawa status` while it lasts.

import t from 'tap'
import { statusLines } from '../../src/cli/operate/status-text.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { statusReport } from '../../src/operate/listener/status-report.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const places = ['302602', '302604', '302605', '302606', '302608']
const seconds = 110

const start = async (t: Parameters<typeof startGateway>[0], env: Record<string, string> = {}) => {
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
  const { clock, gateway, own, status } = await start(t)
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
  t.strictSame(told, ['error outage begins', 'warn outage goes on'], JSON.stringify(own()))
  const report = await status()
  const [open] = report.outages ?? []
  t.match(report.outages, [{ outage: 'provider', code: 'provider_failing', errors: seen.errors }])
  t.equal(Date.parse(open?.since ?? ''), Date.parse(noon) + 601_000, 'with the first second')
  const [, line] = statusLines(report, null, createCalendar('Asia/Dhaka'))
  const stale = open?.stale.toLocaleString('en-US')
  t.strictSame(line, {
    text: `provider outage since 12:10, ${stale} requests answered from stale, ${seen.errors} failed (provider_failing)`,
    tone: 'bad',
  })
  const [begins, minute] = own()
  t.match(begins, { outage: 'provider', code: 'provider_failing', reason: /500/ })
  t.match(minute, { outage: 'provider', seconds: Number, failures: Number, cells: Number })
  t.match(minute?.worst, { cell: '21.5,92', usableUntil: null })
  t.ok(Number(minute?.seconds) >= 60 && Number(minute?.seconds) <= 62, `${minute?.seconds} s`)

  await provider.steer({ fault: 'none' })
  await until('the outage is over', async () => {
    // The circuit goes by real time, the backoff of a cell by the clock.
    clock.advance(100)
    await gateway.get(`/weather/upazila/${places[0]}`)
    return own().some(({ msg }) => msg === 'outage is over')
  })
  const lines = own()
  t.equal(lines.length, 3, JSON.stringify(lines))
  const over = lines[2]
  t.strictSame((await status()).outages, [])
  t.ok(Number(open?.stale) <= Number(over?.stale), 'the sums so far are those of a little earlier')
  t.ok(Number(open?.failures) <= Number(over?.failures))
  t.match(over, { level: 'info', outage: 'provider', failures: Number, causes: { provider_failing: Number } })
  t.ok(Number(over?.seconds) >= seconds - 2, `${over?.seconds} s`)
  t.equal(over?.errors, seen.errors)
  t.ok(Number(over?.stale) >= seen.stale - places.length, `${over?.stale} stale answers, ${seen.stale} seen`)
  t.ok(seen.errors > 100 && seen.stale > 500, `${seen.errors} errors, ${seen.stale} stale`)
})

t.test('single failures are lines of their own, once a minute for each cause', async t => {
  const { clock, gateway, own } = await start(t, {
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
  })
  const [place] = places
  const get = () => gateway.get(`/weather/upazila/${place}`)
  const fail = async () => {
    clock.advance(601_000)
    await provider.steer({ fault: 'internal-error', times: 1 })
    const before = (await provider.state()).calls
    t.match((await get()).headers['cache-status'], /stale/)
    await until('the refresh has failed', async () => (await provider.state()).calls > before)
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
  const msg = 'refresh failed; the older timeline stays in use'
  t.match(failed[0], { code: 'provider_failing', reason: /500/, cell: /^\d/, msg })
})
