// A machine that starts with its clock hours ahead, as with a hardware clock in local time, and is set right afterwards: weather
// from before is refreshed as any other, and no response says that it is from the future.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const right = '2026-11-21T06:00:00.000Z'

t.test('weather that was loaded before the clock was set back is refreshed', async t => {
  for (const freshness of ['run', 'age']) {
    const clock = manualClock('2026-11-21T12:00:00Z')
    const provider = await startProviderHere(t, undefined, right)
    const env = { ABOHAWA_CACHE__FRESHNESS: freshness }
    const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
    const headers = async () => (await gateway.get('/weather/district/3026')).headers
    t.match(await headers(), { 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' })

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
