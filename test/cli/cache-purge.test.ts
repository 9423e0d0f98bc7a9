// `abohawa cache purge` and POST /cache/purge: soft whatever the provider does, and hard only where that is said.

import t from 'tap'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { createFreeKey, singleGatewayEnv } from '../support/single-gateway.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test('no purge takes the last usable copy unless it is hard by name', async t => {
  const provider = await startProvider(t, undefined, null)
  const env = await singleGatewayEnv(t, provider.url, { ABOHAWA_TEST_PROVIDER__RETRIES: '0' })
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const key = await createFreeKey(env)
  const get = () => sendRequest(`${gateway.urls.api}/api/v1/weather/district/3026`, { key })
  const post = async (body: object) => {
    const response = await fetch(`${gateway.urls.ops}/cache/purge`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  const purge = (...args: string[]) => runCommand(['cache', 'purge', ...args], env)
  const isServed = async () => {
    const { body } = await sendRequest(`${gateway.urls.ops}/cache/cell?of=district/3026`)
    return body.gateway.memory?.purged === 'soft'
  }
  t.equal((await get()).status, 200)
  // Forecasts alone: what weighs nothing is answered.
  await provider.steer({ fault: 'internal-error' })
  for (const scope of ['all', 'district/3026', '23,90,24,91']) {
    t.match(await post({ scope }), { status: 200, body: { kind: 'soft', removed: 0 } })
    t.match(await purge(scope), {
      code: 0,
      stdout:
        /^Purged softly: [\s\S]* nothing removed; [\s\S]*served as stale until it is reloaded; --hard removes it\n/,
    })
    await until('it is in force', isServed)
    t.match(await get(), { status: 200, headers: { 'cache-status': /fwd=stale|hit; ttl=/ } }, scope)
  }
  for (const soft of [true, false])
    t.match(await post({ scope: 'all', soft }), {
      status: 400,
      body: { error: /soft.*allowed: JSON such as \{"scope":"district\/3026"\}, with "hard":true/ },
    })
  t.match(await purge('all', '--hard'), {
    code: 0,
    stdout: /^Purged hard: everything\.\n[\s\S]* 1 entry removed\n/,
  })
  await until('it is gone', async () => (await get()).status === 500)
  t.match(await post({ scope: 'all', hard: true }), { status: 200, body: { kind: 'hard', removed: 0 } })
})
