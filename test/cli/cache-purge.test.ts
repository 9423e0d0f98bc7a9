// `abohawa cache purge all` and POST /cache/purge without a word on `soft`: soft while nothing can be loaded, else hard.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { freePort } from '../support/redis-server.ts'
import { createFreeKey, singleGatewayEnv } from '../support/single-gateway.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { useStore } from '../support/use-store.ts'

t.test('all is purged softly where nothing can be loaded, hard where it can or --hard is given', async t => {
  let status = 200
  const server = createServer((_request, response) => {
    response.statusCode = status
    response.end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const env = {
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_OPS__PORT: String(await freePort()),
    ABOHAWA_PROVIDER__BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
  await useStore(env)
  const purge = async (...args: string[]) =>
    JSON.parse((await runCommand(['cache', 'purge', ...args, '--json'], env)).stdout)
  t.match(await purge('all'), { kind: 'hard', softBecause: null })

  status = 504
  t.match(await purge('all'), { kind: 'soft', softBecause: 'the provider answers 504' })
  t.match(await purge('all', '--hard'), { kind: 'hard', softBecause: null })
  t.match(await purge('all', '--soft'), { kind: 'soft', softBecause: null })
  t.match(await purge('district/3026'), { kind: 'hard' }, 'elsewhere hard stays the default')
  t.match(
    (await runCommand(['cache', 'purge', 'all'], env)).stdout,
    /^Purged softly: everything\.\nSoftly because the provider answers 504; --hard removes it all the same\.\n/,
  )
  const away = { ...env, ABOHAWA_PROVIDER__BASE_URL: `http://127.0.0.1:${await freePort()}` }
  const { stdout } = await runCommand(['cache', 'purge', 'all', '--json'], away)
  t.match(JSON.parse(stdout), { kind: 'soft', softBecause: /^the provider does not answer \(.*ECONNREFUSED/ })
})

t.test('a gateway whose circuit is open purges all softly, on its own port and for the command', async t => {
  const provider = await startProvider(t, undefined, null)
  const env = await singleGatewayEnv(t, provider.url, {
    ABOHAWA_PROVIDER__BREAKER__AFTER: '1',
    ABOHAWA_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1m',
    ABOHAWA_PROVIDER__RETRIES: '0',
  })
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const key = await createFreeKey(env)
  const post = async (body: object) => {
    const response = await fetch(`${gateway.urls.ops}/cache/purge`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    return response.json()
  }
  t.match(await post({ scope: 'all' }), { kind: 'hard', softBecause: null })
  await provider.steer({ fault: 'internal-error', times: 1 })
  t.equal((await sendRequest(`${gateway.urls.api}/api/v1/weather/district/3026`, { key })).status, 500)
  t.match(await post({ scope: 'all' }), { kind: 'soft', softBecause: 'the circuit to the provider is open' })
  t.match(await post({ scope: 'all', soft: false }), { kind: 'hard', softBecause: null })
  t.match(await post({ scope: 'district/3026' }), { kind: 'hard' })
  const { stdout } = await runCommand(['cache', 'purge', 'all', '--json'], env)
  // The gateway says it of itself, and the store of its last heartbeat.
  const softBecause = /^the circuit .* in the gateway at http|^the instance .* sees an outage of the provider/
  t.match(JSON.parse(stdout), { kind: 'soft', softBecause })
})
