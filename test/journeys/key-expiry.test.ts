// A key that expires while its gateway runs: refused at the instant, by name, counted as other 401s are, and valid again
// when its expiry is put off.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test('an expired key is 401 from its instant on, and costs no unit', async t => {
  const provider = await startScriptedProvider(t)
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock })
  const { administration } = gateway
  const { id, key } = await administration.createKey('Padma', 'free', { expires: '2h' })
  const get = () => gateway.get('/locations?type=division', { key })
  t.match(await get(), { status: 200, headers: { 'x-ratelimit-remaining': '99' } })
  clock.advance(2 * 3_600_000 - 1)
  t.equal((await get()).status, 200, 'the last millisecond')
  clock.advance(1)
  const refused = await get()
  t.match(refused, {
    status: 401,
    headers: { 'x-ratelimit-limit': '0', 'www-authenticate': 'ApiKey realm="abohawa"' },
    body: { error: 'the API key is invalid: it has expired' },
  })
  t.equal(await gateway.metric('abohawa_admissions_total{decision="key-expired"}'), 1)
  t.match(
    gateway.logged.filter(({ status }) => status === 401),
    [{ reason: 'key-expired' }],
  )
  t.match(await administration.showKey(id), { status: 'expired', usedToday: 2 })
  const day = (await administration.showKey(id)).lastUsedOn
  t.match(day, /^\d{4}-\d\d-\d\d$/)

  await administration.setKey(id, { expires: '90d' })
  await until('the key is valid again', async () => (await get()).status === 200)
  t.match(await administration.setKey(id, { expires: 'never' }), { status: 'active', expiresAt: null })
  t.equal((await get()).status, 200)
})
