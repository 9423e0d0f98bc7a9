// Without it a limit that the provider reported wrongly could not be lifted by an operator, on Redis or on a file.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { createKey, processEnv, startProcess } from '../scenarios/set-up.ts'
import { noBudget } from '../support/gateway-env.ts'
import { type Running, runCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const dhaka = '/weather/district/3026'
const elsewhere = '/weather/coords/22.3/91.8'
const third = '/weather/coords/24.9/91.9'

const provider = await startProvider(t, undefined, null)

/** Runs commands beside the gateways with these settings, which have to succeed. */
const commandOn =
  (t: Test, env: Record<string, string>) =>
  async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args, env)
    const quiet = { code: 0, stderr: /^(?:(?:Store: |No gateway answered at ).*\n)?$/ }
    t.match({ code, stderr }, quiet, args.join(' '))

    return stdout
  }

const setUp = async (t: Test, more: Record<string, string>, count: number) => {
  await provider.steer({ fault: 'none', reset: true })
  const env = {
    ...processEnv(provider.url, { ABOHAWA_LOG__LEVEL: 'info', ...more }),
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
    ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
  }
  const gateways: Running[] = []
  for (let i = 0; i < count; i += 1) gateways.push(await startProcess(t, env))
  const command = commandOn(t, env)
  const key = await createKey(env)
  const get = async ({ urls }: Running, path: string) => sendRequest(`${urls.api}/api/v1${path}`, { key })
  const provider429 = async () => {
    await provider.steer({ fault: 'daily-limit', times: 1 })
    const [gateway] = gateways
    if (gateway) t.equal((await get(gateway, dhaka)).status, 500)
  }
  return { gateways, command, get, provider429, env }
}

const detailOf = async ({ urls }: Running) => (await sendRequest(`${urls.ops}/readyz`)).body.detail.provider
const reopenedLines = ({ lines }: Running) =>
  lines.filter(line => line.includes('budget reopened by an operator'))
const callsSent = async () => (await provider.state()).calls

t.test('a fleet is closed by one daily 429, reopened by one command, and closed by the next', async t => {
  const redis = await testRedis(t)
  const scene = await setUp(t, redis.env, 2)
  const { gateways, command, get, provider429, env } = scene
  /** What the store alone knows: no gateway is at the ops address of the command. */
  const budgetOf = async () => JSON.parse(await command('status', '--json')).budget
  t.hasStrict(await budgetOf(), {
    closure: null,
    shared: true,
    windows: [{ name: 'minute', limit: 570, used: 0 }, { name: 'hour' }, { name: 'day' }],
  })
  await provider429()
  for (const gateway of gateways)
    await until('it is closed', async () => /limited until/.test(await detailOf(gateway)))
  const before = await callsSent()
  for (const gateway of gateways) t.equal((await get(gateway, elsewhere)).status, 500)
  t.equal(await callsSent(), before, 'nothing is sent while it is closed')

  const shown = (await budgetOf()).closure
  t.match(shown, { reason: /^the provider answered 429: Daily API request limit exceeded/ })
  t.ok(Date.parse(shown.until) > Date.now())
  for (const { urls, lines } of gateways) {
    const { body } = await sendRequest(`${urls.ops}/status`)
    t.strictSame(body.budget.closure, shown)
    t.equal(body.provider.circuit, 'closed')
    const screen = await command('status', '--gateway', urls.ops ?? '')
    t.match(screen, /^budget closed, nothing is loaded from the provider until .*answered 429: Daily/m)
    t.match(screen, /^abohawa budget reopen ends it/m)
    t.match(screen, /^ {2}circuit +closed$/m)
    t.match(screen, /^ {2}day +\d+ .* closed$/m)
    const closed = () => lines.filter(line => line.includes('"msg":"budget closed'))
    await until('the log says so', async () => closed().length > 0)
    t.equal(closed().length, 1, 'also of a gateway that sent nothing')
    const line = { closedUntil: shown.until, reason: shown.reason, next: /budget reopen/ }
    t.match(JSON.parse(closed()[0] ?? ''), line)
  }

  const [first] = gateways
  const later = await startProcess(t, env)
  await until('a restart does not reopen it', async () => /limited until/.test(await detailOf(later)))

  const report = JSON.parse(await command('budget', 'reopen', '--json'))
  t.hasStrict(report, { closedUntil: shown.until, reason: shown.reason })
  for (const gateway of [...gateways, later]) {
    await until('it has reopened', async () => !/limited until/.test(await detailOf(gateway)))
    await until('its log says so', () => reopenedLines(gateway).length > 0)
    t.equal(reopenedLines(gateway).length, 1)
    t.match(reopenedLines(gateway)[0], `"closedUntil":"${shown.until}"`)
    // Both cells were told to wait until midnight.
    for (const path of [dhaka, elsewhere])
      t.equal((await get(gateway, path)).status, 200, `${path} is fetched again at once`)
    const { text } = await sendRequest(`${gateway.urls.ops}/metrics`)
    t.match(text, /^abohawa_provider_budget_reopenings_total 1$/m)
  }
  t.match(await command('budget', 'reopen'), /^The budget is not closed in the store\.\n/)

  await provider.steer({ fault: 'daily-limit', times: 1 })
  if (first) t.equal((await get(first, third)).status, 500)
  t.hasStrict(await budgetOf(), { closure: { until: shown.until } })
  for (const gateway of gateways) {
    await until('it is closed again', async () => /limited until/.test(await detailOf(gateway)))
    t.equal(reopenedLines(gateway).length, 1, 'a reopening of what is open is none')
  }
})

t.test('on a file', async t => {
  // These gateways are in this process: the commands are in another one, and the file is all that they share.
  const here = async (t: Test, path: string, more: Record<string, string> = {}) => {
    await provider.steer({ fault: 'none', reset: true })
    const env = { ABOHAWA_STORE__PATH: path, ABOHAWA_PROVIDER__BASE_URL: provider.url, ...more }
    const gateway = await startGateway(t, { providerUrl: provider.url, clock: systemClock, env })
    return { gateway, command: commandOn(t, env) }
  }

  t.test('a gateway follows a command in another process, and its stale cells are refreshed', async t => {
    const { gateway, command } = await here(t, join(t.testdir(), 'store.db'), {
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
      ABOHAWA_CACHE__FRESH_FOR: '100ms',
      ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
      ABOHAWA_CACHE__FRESH_FOR_AT_MOST: '100ms',
      ABOHAWA_TEST_CACHE__REFRESH_AHEAD_FOR: '0s',
    })
    t.equal((await gateway.get(dhaka)).status, 200)
    await provider.steer({ fault: 'daily-limit', times: 1 })
    await until('it is closed', async () => {
      await gateway.get(dhaka)
      return /limited until/.test((await sendRequest(`${gateway.opsUrl}/readyz`)).body.detail.provider)
    })
    const cell = async () => (await sendRequest(`${gateway.opsUrl}/cache/cell?of=district/3026`)).body
    const before = (await cell()).gateway
    t.hasStrict(before.lastFailure, { code: 'provider_limited' })
    t.ok(Date.parse(before.lastFailure.backoffUntil) - Date.now() > 0)

    await command('budget', 'reopen')
    await until('the stale cell is fetched again', async () => {
      await gateway.get(dhaka)
      return (await cell()).gateway.memory.fetchedAt > before.memory.fetchedAt
    })
    const reopened = gateway.logged.filter(({ msg }) =>
      String(msg).includes('budget reopened by an operator'),
    )
    t.equal(reopened.length, 1)
  })

  t.test('without limits the 429 closes as well, and the command reopens', async t => {
    const { gateway, command } = await here(t, join(t.testdir(), 'store.db'), noBudget)
    await provider.steer({ fault: 'daily-limit', times: 1 })
    t.equal((await gateway.get(dhaka)).status, 500)
    t.match(await command('status', '--gateway', gateway.opsUrl), /^budget closed, nothing is loaded/m)
    await command('budget', 'reopen')
    await until('it has reopened', async () => (await gateway.get(dhaka)).status === 200)
    t.match(
      await command('budget', 'reopen'),
      /^The budget is not closed.* use the previous account until they restart$/ms,
    )
  })
})
