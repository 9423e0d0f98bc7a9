// Without this, `cache` commands could differ with and without a gateway, or a purge could take the last usable copy.

import t from 'tap'
import { createKey } from '../scenarios/set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test('show asks the gateway, or the store where there is none; purge writes to the store', async t => {
  const provider = await startProvider(t, undefined, null)
  const env = await singleGatewayEnv(t, provider.url, { ABOHAWA_TEST_PROVIDER__RETRIES: '0' })
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const key = await createKey(env, 'free')
  const get = () => sendRequest(`${gateway.urls.api}/api/v1/weather/district/3026`, { key })
  t.equal((await get()).status, 200)

  const shown = await runCommand(['cache', 'show', 'district/3026', '--json'], env)
  t.hasStrict(shown, { code: 0, stderr: '' })
  const report = JSON.parse(shown.stdout)
  t.hasStrict(report, {
    opsUrl: gateway.urls.ops,
    place: { type: 'district', id: '3026', name: 'Dhaka' },
    shared: { kind: 'embedded', entry: { state: 'fresh' }, fault: null },
    gateway: { memory: { state: 'fresh', purged: null }, loading: false, lastFailure: null },
  })

  const purge = (...args: string[]) => runCommand(['cache', 'purge', ...args], env)
  const isSoft = async () =>
    (await sendRequest(`${gateway.urls.ops}/cache/cell?of=23.71,90.41`)).body.gateway.memory.purged === 'soft'
  // Forecasts alone: what weighs nothing is answered.
  await provider.steer({ fault: 'internal-error' })
  const softly =
    /^Purged softly: [\s\S]* nothing removed; [\s\S]*served as stale until it is reloaded; --hard/
  for (const scope of ['all', '23,90,24,91', 'district/3026']) {
    t.match(await purge(scope), { code: 0, stdout: softly })
    await until('it is in force', isSoft)
    t.match(await get(), { status: 200, headers: { 'cache-status': /fwd=stale|hit; ttl=/ } }, scope)
  }
  const beside = await purge('23.71,90.41', '--json')
  t.hasStrict(JSON.parse(beside.stdout), { kind: 'soft', scope: { cell: '23.7,90.4' }, cells: 1, removed: 0 })

  gateway.child.kill('SIGTERM')
  t.equal(await gateway.exited, 0)
  const alone = await runCommand(['cache', 'show', 'district/3026'], env)
  t.equal(alone.code, 0)
  t.match(alone.stderr, /^No gateway answered at http:.*ECONNREFUSED.*: this is only the shared tier\.\n$/)
  t.match(alone.stdout, /^Dhaka \(district 3026\)\n {2}cell {4}23\.7,90\.4, /)
  t.match(alone.stdout, /\n {2}purged {5}softly: stale at any age\n/)
  t.notMatch(alone.stdout, /fresh until|last error/, 'what only a gateway knows is left out')
  const aloneJson = JSON.parse((await runCommand(['cache', 'show', 'district/3026', '--json'], env)).stdout)
  t.hasStrict(aloneJson, { opsUrl: null, gateway: null, shared: { entry: { purged: 'soft' } } })
  t.equal(aloneJson.shared.entry.fetchedAt, report.shared.entry.fetchedAt)

  const purged = await purge('all', '--hard')
  t.hasStrict(purged, { code: 0, stderr: '' })
  t.match(
    purged.stdout,
    /^Purged hard: everything\.\n {2}covers +3,976 cells\n {2}shared tier {2}1 entry rem/,
  )
  t.match(purged.stdout, 'within a second')
  const empty = await runCommand(['cache', 'show', 'district/3026'], env)
  t.match(empty.stdout, /Nothing is in the shared tier \(embedded\)\./)
})

t.test('warm --force loads a cell whatever is cached, and ends with 1 if that failed', async t => {
  const provider = await startProvider(t, undefined, null)
  const token = '0123456789abcdef0123456789abcdef'
  const more = { ABOHAWA_OPS__TOKEN: token, ABOHAWA_TEST_PROVIDER__RETRIES: '0' }
  const env = await singleGatewayEnv(t, provider.url, more)
  const gateway = await startCommand(t, ['serve'], ['ops'], env)
  const refresh = (...args: string[]) => runCommand(['cache', 'warm', '--force', ...args], env)
  const { calls } = await provider.state()
  const first = await refresh('district/3026')
  t.hasStrict(first, { code: 0, stderr: '' })
  t.match(first.stdout, /^Dhaka \(district 3026\)\n {2}cell +23\.7,90\.4, /)
  t.match(first.stdout, /\n {2}state +fresh +fresh\n/)
  const again = await refresh('23.71,90.41', '--json', '--gateway', gateway.urls.ops ?? '')
  const report = JSON.parse(again.stdout)
  const loaded = { memory: { state: 'fresh' }, lastFailure: null }
  t.hasStrict(report, { opsUrl: gateway.urls.ops, cell: { id: '23.7,90.4' }, gateway: loaded })
  t.equal((await provider.state()).calls, calls + 2, 'although the first one is fresh')

  await provider.steer({ fault: 'internal-error' })
  const failed = await refresh('district/3026', '--json')
  t.equal(failed.code, 1)
  t.match(failed.stderr, /^The cell 23\.7,90\.4 was not loaded: provider_failing: .* answered 500.*\.\n$/)
  t.hasStrict(JSON.parse(failed.stdout).gateway, {
    memory: { state: 'fresh', fetchedAt: report.gateway.memory.fetchedAt },
    lastFailure: { code: 'provider_failing' },
  })
  const unknown = 'abohawa: the district "9" was not found or is not published\n'
  t.hasStrict(await refresh('district/9'), { code: 1, stdout: '', stderr: unknown })
  const bare = { ...env, ABOHAWA_OPS__TOKEN: '' }
  const without = await runCommand(['cache', 'warm', '--force', 'district/3026'], bare)
  const unauthorized =
    /the authorization header must be .*, got none; set ops\.token \(ABOHAWA_OPS__TOKEN\) to .*\n$/
  t.match(without, { code: 1, stderr: unauthorized })
})
