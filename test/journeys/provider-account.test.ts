// Another account at the provider while a gateway runs: host, key and limits are used together or not at all, and what the
// provider said to the former account says nothing of the present one. A real provider behind a proxy that knows keys.

import { request } from 'node:http'
import t, { type Test } from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { testRedis } from '../support/redis-server.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)

const refusals = {
  limited: { status: 429, reason: 'Daily API request limit exceeded. Please try again tomorrow.' },
  denied: { status: 401, reason: 'The supplied API key is invalid.' },
}

/** A host of the provider that refuses the key `former`, once it is told to, when `release` is called. */
const startHost = async (t: Test, refusal?: keyof typeof refusals, holds = false) => {
  const held: (() => void)[] = []
  const host = await startScriptedProvider(t, (received, response) => {
    if (refusal && received.headers['x-api-key'] === 'former') {
      const { status, reason } = refusals[refusal]
      const refuse = () => response.writeHead(status).end(JSON.stringify({ error: true, reason }))
      if (holds) held.push(refuse)
      else refuse()
      return
    }
    const forwarded = request(`${provider.url}${received.url}`, { headers: received.headers }, from => {
      response.writeHead(from.statusCode ?? 500, from.headers)
      from.pipe(response)
    })
    forwarded.on('error', () => response.destroy()).end()
  })
  return {
    url: host.url,
    held,
    keys: () => host.requests.map(({ headers }) => headers['x-api-key'] ?? null),
    release: () => {
      for (const refuse of held.splice(0)) refuse()
    },
  }
}

const env = { ABOHAWA_PROVIDER__API_KEY: 'former', ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600' }
const dhaka = '/weather/coords/23.8/90.4'
const sylhet = '/weather/coords/24.9/91.9'

t.test('a key and limits that come with another host wait for it, and are used with it alone', async t => {
  const host = await startHost(t)
  const other = await startHost(t)
  const gateway = await startGateway(t, {
    providerUrl: host.url,
    env: { ...env, ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '3' },
  })
  t.equal((await gateway.get(dhaka)).status, 200)
  const next = { 'provider.baseUrl': other.url, 'provider.apiKey': 'next', 'provider.budget.perMinute': '' }
  await gateway.set({ ...next, 'provider.maxConcurrent': '9', 'provider.timeout': '4s' })
  t.match(gateway.logged.find(({ settings }) => settings)?.settings, [
    'provider.baseUrl',
    'provider.apiKey',
    'provider.maxConcurrent',
    'provider.budget.perMinute',
  ])
  t.equal((await gateway.get(sylhet)).status, 500, 'the limit of the host that is in use')
  await gateway.set({ 'provider.baseUrl': host.url })
  t.equal((await gateway.get(sylhet)).status, 200, 'and on its own host it is live')
  t.strictSame(host.keys(), ['former', 'next'])
  t.strictSame(other.keys(), [])
})

for (const refusal of ['limited', 'denied'] as const) {
  t.test(`cells that the former account was refused are loaded for the present one: ${refusal}`, async t => {
    const host = await startHost(t, refusal)
    const gateway = await startGateway(t, { providerUrl: host.url, env })
    // Three failures in a row open the circuit.
    const paths = [dhaka, sylhet, '/weather/coords/22.3/91.8']
    for (const path of paths) t.equal((await gateway.get(path)).status, 500)
    await gateway.set({ 'provider.apiKey': 'present' })
    for (const path of paths) t.equal((await gateway.get(path)).status, 200, path)
  })

  t.test(`what comes late for the former account ends nothing for the present one: ${refusal}`, async t => {
    const host = await startHost(t, refusal, true)
    const gateway = await startGateway(t, {
      providerUrl: host.url,
      env: {
        ...env,
        ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '1',
        ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      },
    })
    const late = gateway.get(dhaka)
    await until('it is asked', () => host.held.length === 1)
    await gateway.set({ 'provider.apiKey': 'present' })
    host.release()
    t.equal((await late).status, 200, 'it is asked of the present account')
    t.equal((await gateway.get(sylhet)).status, 200)
    t.equal((await gateway.get(dhaka)).status, 200)
    t.strictSame(host.keys(), ['former', 'present', 'present'])
    await gateway.set({ 'provider.apiKey': 'former' })
    const again = gateway.get('/weather/coords/22.3/91.8')
    if (refusal === 'denied') await until('the former is asked again', () => host.held.length === 1)
    host.release()
    t.equal((await again).status, 500)
    const asked = host.keys().filter(key => key === 'former').length
    t.equal(asked, refusal === 'limited' ? 1 : 2, 'the limit of the former account still holds for it')
  })

  t.test(`a refusal to an instance of the former account fails no other: ${refusal}`, async t => {
    const host = await startHost(t, refusal, true)
    const redis = await testRedis(t)
    const onRedis = { ...env, ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: redis.prefix }
    const start = (more: Record<string, string>) =>
      startGateway(t, { providerUrl: host.url, env: { ...onRedis, ...more } })
    const former = await start({})
    const present = await start({ ABOHAWA_PROVIDER__API_KEY: 'present' })
    const refused = former.get(dhaka)
    await until('the former is asked', () => host.held.length === 1)
    const answer = present.get(dhaka)
    // Each passes Redis behind the other's question for the lease.
    for (let i = 0; i < 3; i++) await present.get('/locations?type=division')
    host.release()
    t.equal((await refused).status, 500)
    t.equal((await answer).status, 200)
    t.strictSame(host.keys(), ['former', 'present'])
  })
}
