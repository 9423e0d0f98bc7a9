// A daily limit that the provider reports wrongly, and its end by an operator: real gateways on one Redis or on one file, a
// real provider, and the command as a process beside them.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Running, runCommand, startCommand } from '../support/process.ts'
import { type ProviderProcess, startProvider } from '../support/provider-process.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const dhaka = '/weather/district/3026'
const elsewhere = '/weather/coords/22.3/91.8'
const third = '/weather/coords/24.9/91.9'

// Most of the time gateways wait to hear of each other: those on Redis beside those on a file, each with a provider.
t.jobs = 2
const [providerOfFleet, providerOfFiles] = [
  await startProvider(t, undefined, null),
  await startProvider(t, undefined, null),
]

/** Gateways know of each other's closures within seconds; until then each look is work for them. */
const eventually = (what: string, look: () => Promise<boolean>) => until(what, look, 20_000, 50)

const setUp = async (t: Test, provider: ProviderProcess, more: Record<string, string>, count: number) => {
  await provider.steer({ fault: 'none', reset: true })
  const env = {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
    ABOHAWA_LOG__ACCESS: 'false',
    ...more,
  }
  const gateways: Running[] = []
  for (let i = 0; i < count; i += 1) gateways.push(await startCommand(t, ['serve'], ['api', 'ops'], env))
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(args, env)
    t.match({ code, stderr }, { code: 0, stderr: /^(?:Store: .*\n)?$/ }, args.join(' '))
    return stdout
  }
  const { key } = JSON.parse(
    await command('keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'enterprise', '--json'),
  )
  const get = async ({ urls }: Running, path: string) => sendRequest(`${urls.api}/api/v1${path}`, { key })
  const provider429 = async () => {
    await provider.steer({ fault: 'daily-limit', times: 1 })
    const [gateway] = gateways
    if (gateway) t.equal((await get(gateway, dhaka)).status, 500)
  }
  return { provider, gateways, command, get, provider429, env }
}

const detailOf = async ({ urls }: Running) => (await sendRequest(`${urls.ops}/readyz`)).body.detail.provider
const reopenedLines = ({ lines }: Running) =>
  lines.filter(line => line.includes('budget reopened by an operator'))
const callsOf = async (provider: ProviderProcess) => (await provider.state()).calls

t.test(
  'a fleet on Redis is closed by one daily 429, reopened by one command, and closed by the next 429',
  { buffered: true },
  async t => {
    const redis = await testRedis(t)
    const scene = await setUp(
      t,
      providerOfFleet,
      { ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: redis.prefix },
      2,
    )
    const { provider, gateways, command, get, provider429, env } = scene
    t.match(JSON.parse(await command('budget', 'show', '--json')), {
      closedUntil: null,
      shared: true,
      windows: [
        { name: 'minute', limit: 570, aside: 30, used: 0, left: 570 },
        { name: 'hour' },
        { name: 'day' },
      ],
    })
    await provider429()
    for (const gateway of gateways)
      await eventually('it is closed', async () => /limited until/.test(await detailOf(gateway)))
    const calls = await callsOf(provider)
    for (const gateway of gateways) t.equal((await get(gateway, elsewhere)).status, 500)
    t.equal(await callsOf(provider), calls, 'nothing is sent while it is closed')

    const shown = JSON.parse(await command('budget', 'show', '--json'))
    t.match(shown, { reason: /^the provider answered 429: Daily API request limit exceeded/ })
    t.ok(Date.parse(shown.closedUntil) > Date.parse(shown.at))
    const text = await command('budget', 'show')
    t.match(text, /^Closed until \d{4}-.* the provider answered 429: Daily API.*[^.]\.\n/)
    t.match(text, /^ {2}aside +5\.0 % of each limit is set aside for gateways without the store, and not in/m)
    for (const { urls, lines } of gateways) {
      const { body } = await sendRequest(`${urls.ops}/status`)
      t.strictSame(body.budget.closure, { until: shown.closedUntil, reason: shown.reason })
      t.equal(body.provider.circuit, 'closed')
      const screen = await command('status', '--gateway', urls.ops ?? '')
      t.match(screen, /^budget closed, nothing is loaded from the provider until .*answered 429: Daily/m)
      t.match(screen, /^abohawa budget reopen ends it/m)
      t.match(screen, /^ {2}circuit +closed$/m)
      t.match(screen, /^ {2}day +\d+ .* closed$/m)
      const closed = () => lines.filter(line => line.includes('"msg":"budget closed'))
      await until('the log says so', async () => closed().length > 0)
      t.equal(closed().length, 1, 'also of a gateway that sent nothing')
      t.match(JSON.parse(closed()[0] ?? ''), {
        closedUntil: shown.closedUntil,
        reason: shown.reason,
        next: /budget reopen/,
      })
    }

    const [first] = gateways
    const later = await startCommand(t, ['serve'], ['api', 'ops'], env)
    await eventually('a restart does not reopen it', async () => /limited until/.test(await detailOf(later)))

    const report = JSON.parse(await command('budget', 'reopen', '--json'))
    const ended = performance.now()
    t.match(report, { closedUntil: shown.closedUntil, reason: shown.reason })
    for (const gateway of [...gateways, later]) {
      await eventually('it has reopened', async () => !/limited until/.test(await detailOf(gateway)))
      await until('its log says so', () => reopenedLines(gateway).length > 0)
      t.equal(reopenedLines(gateway).length, 1)
      t.match(reopenedLines(gateway)[0], `"closedUntil":"${shown.closedUntil}"`)
      // Both cells were told to wait until midnight.
      for (const path of [dhaka, elsewhere])
        t.equal((await get(gateway, path)).status, 200, `${path} is fetched again at once`)
      t.match(
        (await sendRequest(`${gateway.urls.ops}/metrics`)).text,
        /^abohawa_provider_budget_reopenings_total 1$/m,
      )
    }
    t.ok(performance.now() - ended < 10_000, `${Math.round(performance.now() - ended)} ms`)
    t.match(await command('budget', 'reopen'), /^Nothing was closed: the budget is open in the store\.\n/)

    await provider.steer({ fault: 'daily-limit', times: 1 })
    if (first) t.equal((await get(first, third)).status, 500)
    t.match(JSON.parse(await command('budget', 'show', '--json')), { closedUntil: shown.closedUntil })
    for (const gateway of gateways) {
      await eventually('it is closed again', async () => /limited until/.test(await detailOf(gateway)))
      t.equal(reopenedLines(gateway).length, 1, 'a reopening of what is open is none')
    }
  },
)

t.test('on a file', { buffered: true }, async t => {
  t.test(
    'a gateway on a file follows a command in another process, and its stale cells are refreshed',
    async t => {
      const scene = await setUp(
        t,
        providerOfFiles,
        {
          ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
          ABOHAWA_CACHE__FRESH_FOR: '100ms',
          ABOHAWA_CACHE__FRESH_SPREAD: '0',
          ABOHAWA_CACHE__FRESH_FOR_AT_MOST: '100ms',
          ABOHAWA_CACHE__REFRESH_AHEAD_FOR: '0s',
        },
        1,
      )
      const { gateways, provider, command, get } = scene
      const [gateway] = gateways
      if (!gateway) return
      t.equal((await get(gateway, dhaka)).status, 200)
      await provider.steer({ fault: 'daily-limit', times: 1 })
      await eventually('it is closed', async () => {
        await get(gateway, dhaka)
        return /limited until/.test(await detailOf(gateway))
      })
      const cell = async () => (await sendRequest(`${gateway.urls.ops}/cache/cell?of=district/3026`)).body
      const before = (await cell()).gateway
      t.match(before.lastFailure, { code: 'provider_limited' })
      t.ok(Date.parse(before.lastFailure.backoffUntil) - Date.now() > 0)

      await command('budget', 'reopen')
      await eventually('the stale cell is fetched again', async () => {
        await get(gateway, dhaka)
        return (await cell()).gateway.memory.fetchedAt > before.memory.fetchedAt
      })
      t.equal(reopenedLines(gateway).length, 1)
    },
  )

  t.test('without limits the 429 closes as well, and the command reopens', async t => {
    const none = { PER_MINUTE: '', PER_HOUR: '', PER_DAY: '' }
    const scene = await setUp(
      t,
      providerOfFiles,
      {
        ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
        ...Object.fromEntries(
          Object.entries(none).map(([name, value]) => [`ABOHAWA_PROVIDER__BUDGET__${name}`, value]),
        ),
      },
      1,
    )
    const { gateways, command, get, provider429 } = scene
    const [gateway] = gateways
    if (!gateway) return
    await provider429()
    t.match(await command('budget', 'show'), /^Closed until .*\n {2}No limits are configured/)
    await command('budget', 'reopen')
    await eventually('it has reopened', async () => (await get(gateway, dhaka)).status === 200)
    t.match(
      await command('budget', 'reopen'),
      /^Nothing was closed.* use the former account until they restart$/ms,
    )
  })

  t.test('a larger daily budget takes effect with the next start', async t => {
    const store = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
    const scene = await setUp(t, providerOfFiles, { ...store, ABOHAWA_PROVIDER__BUDGET__PER_DAY: '3' }, 1)
    const { gateways, command, get, env } = scene
    const [gateway] = gateways
    if (!gateway) return
    t.equal((await get(gateway, dhaka)).status, 200)
    t.equal((await get(gateway, elsewhere)).status, 500, 'the day has room for one cell')
    t.match(JSON.parse(await command('budget', 'show', '--json')).windows[2], { used: 3, left: 0 })
    gateway.child.kill('SIGTERM')
    await gateway.exited
    const raised = await startCommand(t, ['serve'], ['api', 'ops'], {
      ...env,
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '30',
    })
    t.equal((await get(raised, elsewhere)).status, 200)
  })
})
