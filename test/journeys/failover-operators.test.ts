// Without it operators could not see which upstream is in use, or could see its host or key.

import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { runShared } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const key = 'fallback-key-of-the-test'
const first = await startProviderHere(t, { runs: 'none', seed: 1 }, null)
const second = await startProviderHere(t, { runs: 'none', seed: 2 }, null)
const dhaka = '/weather/coords/23.8/90.4'
const sylhet = '/weather/coords/24.9/91.9'
const khulna = '/weather/coords/22.8/89.5'

const fallbacks = (perDay: number) =>
  JSON.stringify([
    { baseUrl: second.url, name: 'public', apiKey: key, budget: { perMinute: null, perHour: null, perDay } },
  ])

t.test('status, metrics, log and commands name each upstream, without its host and key', async t => {
  const env = {
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_PROVIDER__FALLBACKS: fallbacks(900),
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '300ms',
  }
  const gateway = await startGateway(t, { providerUrl: first.url, clock: systemClock, env })
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await runShared(args, {
      ...env,
      ABOHAWA_PROVIDER__BASE_URL: first.url,
      ABOHAWA_OPS__PORT: new URL(gateway.opsUrl).port,
    })
    return { code, text: stdout + stderr }
  }
  const status = async () => (await sendRequest(`${gateway.opsUrl}/status`)).body
  t.equal((await gateway.get(dhaka)).status, 200)
  t.hasStrict((await status()).upstreams, [
    { name: 'primary', inUse: true, circuit: 'closed', windows: [] },
    { name: 'public', inUse: false, circuit: 'closed', windows: [{ name: 'day', limit: 900, used: 0 }] },
  ])
  await first.steer({ fault: 'reset' })
  for (const path of [sylhet, khulna]) t.equal((await gateway.get(path)).status, 200)
  await until('the log says that another one is in use', () =>
    gateway.logged.some(({ msg, upstream }) => msg === 'upstream switched' && upstream === 'public'),
  )
  t.match((await status()).upstreams, [
    { name: 'primary', inUse: false, lastFailure: { code: /^provider_/ } },
    { name: 'public', inUse: true, circuit: 'closed', windows: [{ name: 'day', used: 6 }] },
  ])
  const { text: metrics } = await sendRequest(`${gateway.opsUrl}/metrics`)
  for (const line of [
    /^abohawa_upstream_in_use 1$/m,
    /^abohawa_upstream_loads_total\{upstream="primary"\} 1$/m,
    /^abohawa_upstream_loads_total\{upstream="public"\} 2$/m,
    /^abohawa_upstream_requests_total\{upstream="public",outcome="ok"\} 2$/m,
    /^abohawa_upstream_circuit_closed\{upstream="primary"\} 0$/m,
    /^abohawa_upstream_circuit_closed\{upstream="public"\} 1$/m,
    /^abohawa_upstream_budget_used_share\{upstream="primary"\} NaN$/m,
    /^abohawa_upstream_budget_used_share\{upstream="public"\} 0\.00666/m,
    /^abohawa_provider_request_duration_seconds_count\{outcome="ok"\} 1$/m,
  ])
    t.match(metrics, line)
  const shown = await command('status')
  // On a slow machine its probe is due by now.
  t.match(
    shown.text,
    /^Upstreams\n.*upstream.*\n +primary +(?:half-)?open.*\n +\* +public +closed +0\.7 % of the day/m,
  )
  const cell = await command('cache', 'show', '24.9,91.9')
  t.match(cell.text, /^ +upstream +public +public$/m)

  await second.steer({ fault: 'daily-limit' })
  t.equal((await gateway.get('/weather/coords/25.7/89.2')).status, 500)
  await second.steer({ fault: 'none' })
  t.match((await status()).upstreams[1], { name: 'public', closure: { reason: /Daily API request limit/ } })
  t.match(await command('budget', 'reopen'), { code: 0, text: /^The budget is not closed/ })
  t.match(await command('budget', 'reopen', '--upstream', 'none'), {
    code: 1,
    text: /^abohawa: --upstream must be one of primary, public, got "none"\n$/,
  })
  t.match(await command('budget', 'reopen', '--upstream', 'public'), { code: 0, text: /^Reopened/ })
  await until('it is used again', async () => (await gateway.get('/weather/coords/25.7/89.2')).status === 200)
  await gateway.close()
  const ofStore = await command('status')
  t.match(ofStore.text, /^Upstreams\n.*upstream.*\n +primary +- .*\n +public +- +1\.0 % of the day/m)
  const all = [JSON.stringify(gateway.logged), metrics, shown.text, cell.text, ofStore.text].join('\n')
  t.notMatch(all, new RegExp(key))
  t.notMatch(all, second.url)
})

t.test('the budget of a fallback is live', async t => {
  await first.steer({ fault: 'internal-error' })
  const gateway = await startGateway(t, {
    providerUrl: first.url,
    clock: systemClock,
    env: { ABOHAWA_PROVIDER__FALLBACKS: fallbacks(4), ABOHAWA_TEST_PROVIDER__RETRIES: '0' },
  })
  t.equal((await gateway.get(dhaka)).status, 200)
  t.equal((await gateway.get(sylhet)).status, 500)
  await gateway.set({ 'provider.fallbacks': fallbacks(900) })
  await until('the raised budget is in effect', async () => (await gateway.get(sylhet)).status === 200)
  const changed = gateway.logged.find(({ msg }) => msg === 'configuration reloaded')
  t.strictSame(changed?.changes, ['provider.fallbacks[0].budget.perDay: 4 → 900'])
  await gateway.set({ 'provider.fallbacks': '' })
  t.hasStrict(gateway.logged.at(-1), { msg: 'settings need a restart', settings: ['provider.fallbacks[0]'] })
})

t.test('without fallbacks there is no upstream in status, metrics and log', async t => {
  await first.steer({ fault: 'none' })
  const gateway = await startGateway(t, { providerUrl: first.url, clock: systemClock })
  const { headers } = await gateway.get(dhaka)
  t.notMatch(headers['cache-status'], /upstream/)
  t.strictSame((await sendRequest(`${gateway.opsUrl}/status`)).body.upstreams, [])
  const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
  t.strictSame(text.match(/^abohawa_upstream_.*$/gm), ['abohawa_upstream_in_use 0'])
  t.notOk(gateway.logged.some(line => 'upstream' in line))
})
