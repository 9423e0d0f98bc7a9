// Without it a failed cell could be retried too often, or stay failed after a purge or a recovery of the provider.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { orderPurge } from './ops-requests.ts'

const place = '/weather/coords/23.7/90.4'
const provider = await startProviderHere(t)

const setUp = async (t: Teardown, env: Record<string, string> = {}) => {
  const clock = manualClock()
  await provider.steer({ fault: 'none' })
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      ABOHAWA_TEST_CACHE__RETRY_AFTER: '10s',
      ...env,
    },
  })
  const statusOf = async () => (await gateway.get(place)).headers['cache-status']
  return { clock, gateway, statusOf }
}
const callsOf = async () => (await provider.state()).calls
const explain = async ({ opsUrl }: TestGateway) =>
  (await sendRequest(`${opsUrl}/cache/cell?of=23.7,90.4`)).body.gateway

const purge = async (gateway: TestGateway, hard?: boolean) => {
  const purgesLogged = () => gateway.logged.filter(({ msg }) => msg === 'cache purged').length
  const before = purgesLogged()
  await orderPurge(gateway.opsUrl, '23.7,90.4', hard)
  await until('the gateway has read the purge', async () => purgesLogged() > before)
}

for (const fault of ['empty', 'internal-error'])
  t.test(`${fault}: a purge ends the backoff, so that the next read starts a load`, async t => {
    const { clock, gateway, statusOf } = await setUp(t)
    await gateway.get(place)
    clock.advance(2 * 3_600_000)
    await provider.steer({ fault })
    t.match(await statusOf(), /fwd=stale/)
    await until('the refresh has failed', async () => (await explain(gateway)).lastFailure !== null)
    t.match(await statusOf(), /; hit; ttl=-/, 'it is left alone')
    await provider.steer({ fault: 'none' })
    await purge(gateway)
    t.match(await statusOf(), /fwd=stale/, 'stale while it is loaded')
    await until('the load has come', async () => /; hit; ttl=\d/.test((await statusOf()) ?? ''))

    await provider.steer({ fault })
    await purge(gateway, true)
    t.equal((await gateway.get(place)).status, 500)
    await provider.steer({ fault: 'none' })
    t.equal((await gateway.get(place)).status, 500, 'it is left alone')
    await purge(gateway)
    t.match(await statusOf(), /fwd=miss/, 'a cold cell too')
  })

t.test('purges from before a restart are applied, and neither logged nor counted', async t => {
  const env = { ABOHAWA_STORE__PATH: `${t.testdir()}/shared.db` }
  const { gateway } = await setUp(t, env)
  await gateway.get(place)
  await purge(gateway)
  await gateway.close()
  const again = await setUp(t, env)
  t.match(await again.statusOf(), /fwd=stale/, 'it is applied')
  const purgeLines = () => again.gateway.logged.filter(({ msg }) => msg === 'cache purged')
  t.strictSame(purgeLines(), [])
  const counted = () => again.gateway.metric('abohawa_cache_purges_total{kind="soft"}')
  t.equal(await counted(), 0)
  await purge(again.gateway)
  t.equal(purgeLines().length, 1, 'and the later purge is read')
  t.equal(await counted(), 1)
})

t.test('the circuit closes once the provider is healthy, without any request', async t => {
  const { gateway } = await setUp(t, {
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '2',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '200ms',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '400ms',
  })
  await provider.steer({ fault: 'internal-error' })
  for (const point of ['23/90', '23.7/90.4'])
    t.equal((await gateway.get(`/weather/coords/${point}`)).status, 500)
  const isClosed = async () => (await gateway.metric('abohawa_provider_circuit{state="closed"}')) === 1
  const calls = await callsOf()
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body.detail.provider, /^circuit (?:half-)?open/)
  await until('two probes of a provider that is down', async () => (await callsOf()) >= calls + 2)
  t.equal(await isClosed(), false)
  t.equal((await provider.steer({ fault: 'none', reset: true })).requests.length, 0)
  await until('the circuit is closed', isClosed)
  const since = await provider.state()
  t.equal(since.points, since.calls, 'by a single point')
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body.detail.provider, /^circuit closed/)
  const { headers } = await gateway.get(place)
  t.match(headers['cache-status'], /; hit; ttl=\d+; detail=memory/, 'what came is kept')
})
