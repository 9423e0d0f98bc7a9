// One timeline, many instants: over a quarter-hour, an hour, local midnight and a leap day the slices are right, the
// quota day turns, and the provider hears of none of it.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'

// Long enough for the timelines of this page never to turn stale.
const env = { ABOHAWA_CACHE__FRESH_FOR: '20h' }

const walk = (
  title: string,
  start: string,
  steps: {
    at: string
    current: string
    hour: string
    day: string
    lastDay: string
    reset: string
    maxAge: number
  }[],
) =>
  t.test(title, async t => {
    const clock = manualClock(start)
    const provider = await startProvider(t)
    await provider.steer({ now: start })
    const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
    let lastReset = ''
    let remaining = 0
    for (const { at, current, hour, day, lastDay, reset, maxAge } of steps) {
      clock.set(at)
      const { body, headers, status } = await gateway.get('/weather/district/3026')
      t.equal(status, 200, at)
      t.equal(body.current.time, current)
      t.equal(body.hourly.time[0], hour)
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
  {
    at: '2026-11-21T06:44:59.999Z',
    current: '2026-11-21T12:30',
    hour: '2026-11-21T12:00',
    day: '2026-11-21',
    lastDay: '2026-11-27',
    reset: '2026-11-21T18:00Z',
    maxAge: 0,
  },
  {
    at: '2026-11-21T06:45:00.000Z',
    current: '2026-11-21T12:45',
    hour: '2026-11-21T12:00',
    day: '2026-11-21',
    lastDay: '2026-11-27',
    reset: '2026-11-21T18:00Z',
    maxAge: 900,
  },
  {
    at: '2026-11-21T06:59:59.000Z',
    current: '2026-11-21T12:45',
    hour: '2026-11-21T12:00',
    day: '2026-11-21',
    lastDay: '2026-11-27',
    reset: '2026-11-21T18:00Z',
    maxAge: 1,
  },
  {
    at: '2026-11-21T07:00:00.000Z',
    current: '2026-11-21T13:00',
    hour: '2026-11-21T13:00',
    day: '2026-11-21',
    lastDay: '2026-11-27',
    reset: '2026-11-21T18:00Z',
    maxAge: 900,
  },
])

walk('over local midnight, which is 18:00 UTC', '2026-12-31T10:00:00Z', [
  {
    at: '2026-12-31T17:59:59.999Z',
    current: '2026-12-31T23:45',
    hour: '2026-12-31T23:00',
    day: '2026-12-31',
    lastDay: '2027-01-06',
    reset: '2026-12-31T18:00Z',
    maxAge: 0,
  },
  {
    at: '2026-12-31T18:00:00.000Z',
    current: '2027-01-01T00:00',
    hour: '2027-01-01T00:00',
    day: '2027-01-01',
    lastDay: '2027-01-07',
    reset: '2027-01-01T18:00Z',
    maxAge: 900,
  },
  {
    at: '2027-01-01T00:00:00.000Z',
    current: '2027-01-01T06:00',
    hour: '2027-01-01T06:00',
    day: '2027-01-01',
    lastDay: '2027-01-07',
    reset: '2027-01-01T18:00Z',
    maxAge: 900,
  },
])

walk('into and out of a leap day', '2028-02-28T17:00:00Z', [
  {
    at: '2028-02-28T17:59:00.000Z',
    current: '2028-02-28T23:45',
    hour: '2028-02-28T23:00',
    day: '2028-02-28',
    lastDay: '2028-03-05',
    reset: '2028-02-28T18:00Z',
    maxAge: 60,
  },
  {
    at: '2028-02-28T18:00:00.000Z',
    current: '2028-02-29T00:00',
    hour: '2028-02-29T00:00',
    day: '2028-02-29',
    lastDay: '2028-03-06',
    reset: '2028-02-29T18:00Z',
    maxAge: 900,
  },
])

t.test(
  'freshness: a body is right until its slice or its timeline ends, and says how old the weather is',
  async t => {
    const clock = manualClock('2026-11-21T06:05:00Z')
    const provider = await startProvider(t)
    await provider.steer({ now: '2026-11-21T06:05:00Z' })
    const gateway = await startGateway(t, { providerUrl: provider.url, clock })
    const look = async () => (await gateway.get('/weather/district/3026')).headers

    t.match(await look(), {
      'cache-control': 'private, max-age=600',
      age: '0',
      'last-modified': 'Sat, 21 Nov 2026 06:05:00 GMT',
      'cache-status': 'abohawa; fwd=miss; stored; ttl=3600; key="23.7,90.4"',
    })
    clock.set('2026-11-21T07:01:00Z')
    t.match(await look(), {
      'cache-control': 'private, max-age=240',
      age: '3360',
      'last-modified': 'Sat, 21 Nov 2026 06:05:00 GMT',
      'cache-status': 'abohawa; hit; ttl=240; detail=memory; key="23.7,90.4"',
    })
    clock.set('2026-11-21T07:05:00Z')
    await provider.steer({ now: '2026-11-21T07:05:00Z', hold: true })
    t.match(await look(), {
      'cache-control': 'private, max-age=0',
      age: '3600',
      'cache-status': 'abohawa; hit; ttl=0; detail=stale-memory; key="23.7,90.4"',
    })
    await provider.steer({ hold: false })
    // The refresh behind the stale answer ends on its own; asking until it shows waits for nothing else.
    let headers = await look()
    while (headers.age !== '0') headers = await look()
    t.equal(headers['last-modified'], 'Sat, 21 Nov 2026 07:05:00 GMT')
    t.equal((await provider.state()).calls, 2)
  },
)
