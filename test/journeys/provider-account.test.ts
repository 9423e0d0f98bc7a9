// Without it a limit or refusal of one provider account could be applied to another.

import { request } from 'node:http'
import t, { type Test } from 'tap'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)

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

for (const what of ['provider.baseUrl', 'provider.apiKey'])
  t.test(`limits that come with another account (${what}) wait with it for the next start`, async t => {
    const host = await startHost(t)
    const other = await startHost(t)
    const gateway = await startGateway(t, {
      providerUrl: host.url,
      env: { ...env, ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '3' },
    })
    t.equal((await gateway.get(dhaka)).status, 200)
    const next = what === 'provider.baseUrl' ? other.url : 'next'
    await gateway.set({ [what]: next, 'provider.maxConcurrent': '9', 'provider.budget.perMinute': '' })
    t.strictSame(gateway.logged.find(({ settings }) => settings)?.settings, [
      what,
      'provider.maxConcurrent',
      'provider.budget.perMinute',
    ])
    t.equal((await gateway.get(sylhet)).status, 500, 'the limit of the account that is in use')
    await gateway.set({ [what]: what === 'provider.baseUrl' ? host.url : 'former' })
    t.equal((await gateway.get(sylhet)).status, 200, 'and of its own account it is live')
    t.strictSame(host.keys(), ['former', 'former'])
    t.strictSame(other.keys(), [])
  })

for (const refusal of ['limited', 'denied'] as const) {
  t.test(`a refusal to an instance of the former account fails no other: ${refusal}`, async t => {
    const host = await startHost(t, refusal, true)
    const redis = await testRedis(t)
    const onRedis = { ...env, ...redis.env }
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
