// Without it slices, ages or the quota's day could be wrong at midnight, in a leap year, or after the clock was set.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

// Long enough that no timeline of this file turns stale.
const env = { ABOHAWA_CACHE__FRESH_FOR: '20h', ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0' }

// The instant; the local quarter-hour, the last of seven days, the end of the quota day, seconds the body stays current.
type Step = [at: string, current: string, lastDay: string, reset: string, maxAge: number]

const walk = (title: string, start: string, steps: Step[]) =>
  t.test(title, async t => {
    const clock = manualClock(start)
    const provider = await startProviderHere(t, undefined, start)
    const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
    let lastReset = ''
    let remaining = 0
    for (const [at, current, lastDay, reset, maxAge] of steps) {
      const day = current.slice(0, 10)
      clock.set(at)
      const { body, headers, status } = await gateway.get('/weather/district/3026')
      t.equal(status, 200, at)
      t.equal(body.current.time, current)
      t.equal(body.hourly.time[0], `${current.slice(0, 14)}00`)
      t.equal(body.hourly.time.length, 48)
      t.equal(body.daily.time[0], day)
      t.equal(body.daily.time[6], lastDay)
      t.equal(headers['x-ratelimit-reset'], String(Date.parse(reset) / 1000))
      t.equal(headers['cache-control'], `private, max-age=${maxAge}`)
      remaining = reset === lastReset ? remaining - 1 : 99_999
      lastReset = reset
      t.equal(headers['x-ratelimit-remaining'], String(remaining), 'the count is that of the local day')
      const forecast = await gateway.get('/forecast/district/3026?days=2')
      remaining -= 1
      t.equal(forecast.body.daily.time[0], day)
    }
    t.equal((await provider.state()).calls, 1, 'one call for all of it')
  })

walk('over a quarter-hour and an hour', '2026-11-21T06:44:00Z', [
  ['2026-11-21T06:44:59.999Z', '2026-11-21T12:30', '2026-11-27', '2026-11-21T18:00Z', 0],
  ['2026-11-21T06:45:00.000Z', '2026-11-21T12:45', '2026-11-27', '2026-11-21T18:00Z', 900],
  ['2026-11-21T06:59:59.000Z', '2026-11-21T12:45', '2026-11-27', '2026-11-21T18:00Z', 1],
  ['2026-11-21T07:00:00.000Z', '2026-11-21T13:00', '2026-11-27', '2026-11-21T18:00Z', 900],
])

walk('over local midnight, which is 18:00 UTC, and the turn of the year', '2026-12-31T10:00:00Z', [
  ['2026-12-31T17:59:59.999Z', '2026-12-31T23:45', '2027-01-06', '2026-12-31T18:00Z', 0],
  ['2026-12-31T18:00:00.000Z', '2027-01-01T00:00', '2027-01-07', '2027-01-01T18:00Z', 900],
  ['2027-01-01T00:00:00.000Z', '2027-01-01T06:00', '2027-01-07', '2027-01-01T18:00Z', 900],
])

walk('into a leap day', '2028-02-28T17:00:00Z', [
  ['2028-02-28T17:59:00.000Z', '2028-02-28T23:45', '2028-03-05', '2028-02-28T18:00Z', 60],
  ['2028-02-28T18:00:00.000Z', '2028-02-29T00:00', '2028-03-06', '2028-02-29T18:00Z', 900],
])

walk('out of a leap day', '2028-02-29T17:00:00Z', [
  ['2028-02-29T17:59:59.000Z', '2028-02-29T23:45', '2028-03-06', '2028-02-29T18:00Z', 1],
  ['2028-02-29T18:00:00.000Z', '2028-03-01T00:00', '2028-03-07', '2028-03-01T18:00Z', 900],
])

t.test('a forecast stays right until local midnight, not only for a quarter-hour', async t => {
  const clock = manualClock('2026-11-21T17:30:00Z')
  const provider = await startProviderHere(t, undefined, '2026-11-21T17:30:00Z')
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const maxAge = async () => (await gateway.get('/forecast/district/3026')).headers['cache-control']
  t.equal(await maxAge(), 'private, max-age=1800')
  clock.set('2026-11-21T18:00:00Z')
  // Until the timeline turns stale, before the next midnight.
  t.equal(await maxAge(), `private, max-age=${19.5 * 3600 + 60}`)
})

t.test('a body is right until its slice or its timeline ends, and says how old the weather is', async t => {
  const clock = manualClock('2026-11-21T06:05:00Z')
  const provider = await startProviderHere(t, undefined, '2026-11-21T06:05:00Z')
  const env = { ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0', ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s' }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const headersNow = async () => (await gateway.get('/weather/district/3026')).headers

  t.hasStrict(await headersNow(), {
    'cache-control': 'private, max-age=600',
    'last-modified': 'Sat, 21 Nov 2026 06:05:00 GMT',
    'cache-status': 'abohawa; fwd=miss; stored; ttl=3600; key="23.7,90.4"',
  })
  clock.set('2026-11-21T07:01:00Z')
  t.hasStrict(await headersNow(), {
    'cache-control': 'private, max-age=240',
    'last-modified': 'Sat, 21 Nov 2026 06:05:00 GMT',
    'cache-status': 'abohawa; hit; ttl=240; detail=memory; key="23.7,90.4"',
  })
  clock.set('2026-11-21T07:05:00Z')
  await provider.steer({ now: '2026-11-21T07:05:00Z', hold: true })
  t.match(await headersNow(), {
    'cache-control': 'private, max-age=0',
    // Refresh-ahead may have started the load a moment before, when it fell due.
    'cache-status': /^abohawa; fwd=stale; (collapsed; )?ttl=0; detail=memory; key="23.7,90.4"$/,
  })
  await provider.steer({ hold: false })
  // The refresh behind the stale response ends on its own; polling until it shows waits for nothing else.
  const refreshed = 'Sat, 21 Nov 2026 07:05:00 GMT'
  const headers = await until('the weather is refreshed', async () => {
    const headers = await headersNow()
    return headers['last-modified'] === refreshed && headers
  })
  t.equal(headers.age, undefined, 'how old the weather is stands in last-modified alone')
  t.equal((await provider.state()).calls, 2)
})

const right = '2026-11-21T06:00:00.000Z'

t.test('weather from before the clock was set back is refreshed, and never of the future', async t => {
  for (const freshness of ['run', 'age']) {
    const clock = manualClock('2026-11-21T12:00:00Z')
    const provider = await startProviderHere(t, undefined, right)
    const env = { ABOHAWA_CACHE__FRESHNESS: freshness }
    const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
    const headers = async () => (await gateway.get('/weather/district/3026')).headers
    t.hasStrict(await headers(), { 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' })

    clock.set(right)
    await provider.steer({ hold: true })
    t.match(await headers(), {
      'last-modified': 'Sat, 21 Nov 2026 06:00:00 GMT',
      'cache-control': 'private, max-age=0',
      'cache-status': /^abohawa; fwd=stale; (collapsed; )?ttl=0; detail=memory/,
    })
    await provider.steer({ hold: false })
    clock.advance(60_000)
    await provider.steer({ now: '2026-11-21T06:01:00Z' })
    const refreshed = await until('it is refreshed', async () => {
      const found = await headers()
      return /; hit; ttl=[1-9]/.test(String(found['cache-status'])) && found
    })
    t.match(refreshed['last-modified'], /^Sat, 21 Nov 2026 06:0[01]:00 GMT$/, freshness)
    const { body } = await gateway.get('/weather/district/3026')
    t.equal(body.current.time, '2026-11-21T12:00')
  }
})
