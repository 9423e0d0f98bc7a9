// Without this, `doctor` could miss a real fault, or report one in a healthy installation.

import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTls } from 'node:https'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { freePort, listenOn } from '../support/listening.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { account, makeAccount } from '../support/redis-account.ts'
import { patientRedisEnv, startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'

type Check = { name: string; status: string; detail: string; fix: string | null }

const provider = await startProvider(t, undefined, null)

const setUp = async (t: Test, more: Record<string, string> = {}) => {
  const env: Record<string, string> = {
    ABOHAWA_SERVER__PORT: String(await freePort()),
    ABOHAWA_SERVER__MAX_CONNECTIONS: '100',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: String(await freePort()),
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
    // What answers is well, however late on a busy machine.
    ABOHAWA_TEST_DOCTOR__ANSWER_WITHIN: '2m',
    ABOHAWA_PROVIDER__TIMEOUT: '1m',
    ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '1m',
    ...more,
  }
  const doctor = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['doctor', '--json', ...args], env)
    t.equal(stderr, '')
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] }
    t.equal(ok, code === 0)
    const isFailure = checks.some(({ status }) => status === 'fail')
    t.equal(code === 1, isFailure, 'exit code 1 is a failure')
    for (const { name, status, fix } of checks)
      t.equal(fix !== null, status === 'warn' || status === 'fail', `${name}: a fix where it is not well`)
    t.comment(checks.map(({ name, status, detail }) => `${status} ${name}: ${detail}`).join('\n'))
    return new Map(checks.map(check => [check.name, check]))
  }
  return { env, doctor }
}

t.test('where all is well it says so, a line each, spends one point and makes no store', async t => {
  await provider.steer({ fault: 'none', reset: true })
  const { env, doctor } = await setUp(t)
  const { code, stdout, stderr } = await runCommand(['doctor'], env)
  t.hasStrict({ code, stderr }, { code: 0, stderr: '' })
  t.match(stdout, /^ok {4}config +every setting is valid\nok {4}node +version /)
  t.match(
    stdout,
    /\nok {4}provider +http\S+ answers; no key is needed; one point was loaded, which weighs 3; /,
  )
  t.match(stdout, /9997 of 10000 left this day/)
  t.match(stdout, /\nok {4}tiers +there are no keys yet\n\n\d+ ok, 0 to look at, 0 failed\.\n$/)
  t.equal((await provider.state()).points, 1)
  t.notOk(existsSync(env.ABOHAWA_STORE__PATH ?? ''))
  t.match((await doctor('--no-spend')).get('provider'), { status: 'ok', detail: /no point was loaded/ })
  t.equal((await provider.state()).points, 1)
})

t.test('beside a serving gateway its ports are well, and the point is charged to its budget', async t => {
  const { env, doctor } = await setUp(t)
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const before = await doctor('--no-spend', '--url', gateway.urls.api ?? '')
  const held = /^server\.port \S+ is held by a running gateway; ops\.port \S+ is held by a running gateway$/
  t.match(before.get('ports'), { status: 'ok', detail: held })
  t.match(before.get('provider'), { status: 'ok', detail: /10000 of 10000 left this day/ })
  t.match(before.get('proxies'), { status: 'warn', detail: /accepted over plain HTTP/ })
  t.match((await doctor()).get('provider'), { status: 'ok', detail: /9997 of 10000 left this day/ })

  const port = env.ABOHAWA_SERVER__PORT ?? ''
  const other = await setUp(t, { ABOHAWA_SERVER__PORT: port })
  t.match((await other.doctor('--no-spend')).get('ports'), {
    status: 'fail',
    detail: /^server\.port \S+ is held by a gateway that has another ops\.port$/,
  })
  const shared = await setUp(t, { ABOHAWA_SERVER__PORT: port, ABOHAWA_SERVER__REUSE_PORT: 'true' })
  t.hasStrict((await shared.doctor('--no-spend')).get('ports'), { status: 'ok' })
})

t.test('the ports of several processes are those of each of them', async t => {
  // It ends each request, so that nothing waits for its answer.
  const held = createServer(request => request.destroy())
  const port = await listenOn(t, held)
  const ports = async (more: Record<string, string>) =>
    (await (await setUp(t, more)).doctor('--no-spend', '--processes', '2')).get('ports')
  t.match(await ports({ ABOHAWA_OPS__PORT: String(port - 1) }), {
    status: 'fail',
    detail: new RegExp(`ops\\.port \\S+:${port} is held by another program$`),
  })
  for (const [more, detail] of [
    [{ ABOHAWA_OPS__PORT: '65535' }, /set them further apart$/],
    [{ ABOHAWA_SERVER__PORT: '0' }, /^server\.port is 0, but 2 processes share one port/],
  ] as const)
    t.match(await ports(more), { status: 'fail', detail })
})

t.test('another program on a port, an address of another machine, and a faulty setting fail', async t => {
  const other = createServer((_request, response) => response.end('hello'))
  const port = await listenOn(t, other)
  const { doctor } = await setUp(t, {
    ABOHAWA_OPS__PORT: String(port),
    ABOHAWA_SERVER__HOST: '192.0.2.1',
    ABOHAWA_SERVER__TRUSTED_PROXIES: '[10.0.0.0/8]',
  })
  const checks = await doctor('--no-spend', '--url', `http://127.0.0.1:${port}`)
  const detail =
    /^server\.port 192\.0\.2\.1:\d+ can't be listened on: .*; ops\.port \S+ is held by another program$/
  t.match(checks.get('ports'), { status: 'fail', detail, fix: /^Set server\.host .* Stop that program/ })
  t.match(checks.get('proxies'), { status: 'fail', detail: /is no gateway of this product/ })

  const faulty = await setUp(t, { ABOHAWA_SERVER__MAX_CONNECTIONS: '0' })
  const config = (await faulty.doctor()).get('config')
  t.match(config, { status: 'fail', detail: /server\.maxConnections|MAX_CONN/ })
})

t.test('a proxy that ends HTTPS and does not say so is found, and one that says so is well', async t => {
  const { env, doctor } = await setUp(t, { ABOHAWA_SERVER__TRUSTED_PROXIES: '[127.0.0.1]' })
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const proxies = async (url: string) => (await doctor('--no-spend', '--url', url)).get('proxies')
  t.match(await proxies(gateway.urls.api ?? ''), { status: 'ok', detail: /; plain HTTP is refused$/ })
  const fixtures = join(import.meta.dirname, '..', 'fixtures')
  const cert = join(fixtures, 'localhost.crt')
  let forwarded: Record<string, string> = {}
  const proxy = createTls(
    { cert: readFileSync(cert), key: readFileSync(join(fixtures, 'localhost.key')) },
    async (request, response) => {
      const answer = await fetch(`${gateway.urls.api}${request.url}`, { headers: forwarded })
      const limit = answer.headers.get('x-ratelimit-limit') ?? ''
      response.writeHead(answer.status, { 'x-ratelimit-limit': limit })
      response.end(await answer.text())
    },
  )
  const url = `https://localhost:${await listenOn(t, proxy, 'localhost')}`
  t.match(await proxies(url), {
    status: 'fail',
    detail: /^no answer at https:/,
    fix: /NODE_EXTRA_CA_CERTS=ca\.pem/,
  })
  env.NODE_EXTRA_CA_CERTS = cert
  const unsaid = 'a request over HTTPS arrives as plain HTTP'
  t.match(await proxies(url), { status: 'fail', detail: unsaid, fix: /x-forwarded-proto/ })
  forwarded = { 'x-forwarded-proto': 'https' }
  t.match(await proxies(url), { status: 'ok', detail: /; HTTPS arrives as HTTPS$/ })
})

t.test('a provider that is away, refuses the key, fails or is limited', async t => {
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const { doctor: lost } = await setUp(t, { ABOHAWA_PROVIDER__BASE_URL: nowhere })
  t.match((await lost()).get('provider'), { status: 'fail', detail: /no answer at .*ECONNREFUSED/ })
  const { doctor } = await setUp(t)
  for (const [fault, found] of [
    ['forbidden', { status: 'fail', fix: /provider\.apiKey/ }],
    ['all-null', { status: 'fail' }],
    ['hourly-limit', { status: 'warn', detail: /429/ }],
  ] as const) {
    await provider.steer({ fault, times: 1 })
    t.match((await doctor()).get('provider'), found, fault)
  }
})

t.test('Redis: away, and well', async t => {
  const { doctor: lost } = await setUp(t, { ABOHAWA_REDIS__URL: `redis://127.0.0.1:${await freePort()}` })
  const without = await lost('--no-spend')
  t.match(without.get('redis'), { status: 'fail', detail: /can't be used: .*ECONNREFUSED/ })
  t.equal(without.get('tiers')?.status, 'skip')

  const shared = await testRedis(t)
  const { doctor } = await setUp(t, shared.env)
  const well = await doctor('--no-spend')
  for (const name of ['redis', 'redis rights', 'clocks']) t.equal(well.get(name)?.status, 'ok', name)
  t.match(well.get('redis'), {
    detail: /answers \(single\); (Redis|Valkey) \d.*; this version can work on the store; master with /,
  })
  const raw = new Redis(shared.url)
  t.strictSame(await raw.keys(`${shared.prefix}*`), [], 'it leaves nothing behind')
  await raw.quit()
})

t.test(
  'a right to keys that the user lacks is told once, with its command',
  { skip: withoutOwnRedis },
  async t => {
    const { url, admin: raw } = await startRedis(t)
    await makeAccount(raw)
    const { user, password } = account
    const { doctor } = await setUp(t, {
      ...patientRedisEnv,
      ABOHAWA_REDIS__URL: url.replace('//', `//${user}:${password}@`),
    })
    const all = 'the user abohawa may run every command that is needed'
    t.hasStrict((await doctor('--no-spend')).get('redis rights'), { status: 'ok', detail: all })
    await raw.acl('SETUSER', user, 'resetkeys', '~other:*')
    const checks = await doctor('--no-spend')
    t.not(checks.get('redis')?.status, 'fail')
    const detail = /may not use the keys abohawa:\*/
    const fix = 'ACL SETUSER abohawa ~abohawa:* &abohawa:*'
    t.match(checks.get('redis rights'), { status: 'fail', detail, fix })
  },
)
