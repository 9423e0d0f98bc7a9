// `abohawa cache …` beside a running gateway and without one, and its usage errors.

import { join } from 'node:path'
import t from 'tap'
import { runCommands } from '../support/printed.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { createFreeKey, singleGatewayEnv } from '../support/single-gateway.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { useStore } from '../support/use-store.ts'

const names = ['show', 'purge']
const helps = await runCommands(names.map(name => ['cache', name, '--help']))
for (const [i, name] of names.entries())
  t.test(`cache ${name} --help shows an example and the common options`, async t => {
    const { code, stdout, stderr } = helps[i] ?? {}
    t.match({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, `Example:\n  npm run -s abohawa -- cache ${name} district/3026`)
    t.match(stdout, '--config <file>')
    t.match(stdout, '--json')
  })

const refusals: [number, string[], RegExp][] = [
  [2, ['show'], /missing required argument 'target'/],
  [2, ['show', 'dhaka'], /the target is "dhaka"; allowed: a point such as 23\.81,90\.41 or a place such as/],
  [2, ['show', 'all'], /the target is "all"; allowed: a point/],
  [2, ['show', 'town/3'], /"town" is no type of place; allowed: division, district, upazila, union/],
  [2, ['show', '23', '90'], /too many arguments/],
  [2, ['show', '-23.5,90'], /-23\.5,90 looks like an option; put `--` before an argument/],
  [
    1,
    ['show', '--', '-23.5,90'],
    /the latitude -23\.5 is outside the bounds of Bangladesh; allowed: 20 to 27/,
  ],
  [1, ['show', '53,9'], /the latitude 53 is outside the bounds/],
  [1, ['show', 'district/9'], /the district "9" was not found or is not published/],
  [2, ['show', 'district/3026', '--gateway', 'here'], /--gateway is here; allowed: an address such as/],
  [2, ['purge'], /missing required argument 'target'/],
  [2, ['purge', 'everything'], /the target is "everything"; allowed: all, a point such as/],
  [2, ['purge', '24,90,23,91'], /the box 24,90,23,91 has south 24 beyond north 23; allowed: /],
  [2, ['purge', '-24,90,23,91'], /-24,90,23,91 looks like an option; put `--` before an argument/],
  [2, ['purge', 'all', '--soft'], /unknown option '--soft'/],
  [2, ['warm', '--force'], /the target is ""; allowed: a point such as 23\.81,90\.41 or a place such as/],
  [
    2,
    ['warm', '--force', 'all'],
    /the target is "all"; allowed: a point such as 23\.81,90\.41 or a place such as/,
  ],
  [
    2,
    ['warm', '--force', '23,90', '--dry-run'],
    /--force is of one cell; allowed: a point or a place, without/,
  ],
  [
    2,
    ['warm', '--force', 'district/3026', '--gateway', 'here'],
    /--gateway is here; allowed: an address such as/,
  ],
  [
    1,
    ['warm', '--force', 'district/3026'],
    /nothing was loaded, because no gateway answered at http:\/\/127\.0\.0\.1:1 \(.*\); without --force this/,
  ],
  [1, ['purge', '23.51,90.01,23.52,90.02'], /has no centre of a grid cell in it; allowed: /],
  [1, ['purge', 'union/1'], /the union "1" was not found or is not published/],
]
const refusalEnv = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'), ABOHAWA_OPS__PORT: '1' }
await useStore(refusalEnv)
const refused = await runCommands(
  refusals.map(([, args]) => ['cache', ...args]),
  refusalEnv,
)
for (const [i, [exit, args, sentence]] of refusals.entries())
  t.test(`refused: abohawa cache ${args.join(' ')}`, async t => {
    const { code, stdout, stderr } = refused[i] ?? {}
    t.equal(code, exit)
    t.equal(stdout, '')
    t.match(stderr, sentence)
    t.match(stderr, /^abohawa: .*\n$/, 'one line')
  })

t.test(
  'show queries the gateway at the configured address, or the store without one; purge writes to the store',
  async t => {
    const provider = await startProvider(t, undefined, null)
    const env = await singleGatewayEnv(t, provider.url)
    const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
    const key = await createFreeKey(env)
    t.equal((await sendRequest(`${gateway.urls.api}/api/v1/weather/district/3026`, { key })).status, 200)

    const shown = await runCommand(['cache', 'show', 'district/3026', '--json'], env)
    t.match(shown, { code: 0, stderr: '' })
    const report = JSON.parse(shown.stdout)
    t.match(report, {
      opsUrl: gateway.urls.ops,
      place: { type: 'district', id: '3026', name: 'Dhaka' },
      shared: { kind: 'embedded', entry: { state: 'fresh' }, fault: null },
      gateway: { memory: { state: 'fresh', purged: null }, loading: false, lastFailure: null },
    })

    const beside = await runCommand(['cache', 'purge', '23.71,90.41', '--json'], env)
    t.match(JSON.parse(beside.stdout), { kind: 'soft', scope: { cell: '23.7,90.4' }, cells: 1, removed: 0 })
    const state = async () =>
      (await sendRequest(`${gateway.urls.ops}/cache/cell?of=23.71,90.41`)).body.gateway.memory.state
    await until('the cell is stale', async () => (await state()) === 'stale')

    gateway.child.kill('SIGTERM')
    t.equal(await gateway.exited, 0)
    const alone = await runCommand(['cache', 'show', 'district/3026'], env)
    t.equal(alone.code, 0)
    t.match(
      alone.stderr,
      /^No gateway answered at http:\/\/127\.0\.0\.1:\d+ \(.*ECONNREFUSED.*\): this is the shared tier alone\.\n$/,
    )
    t.match(alone.stdout, /^Dhaka \(district 3026\)\n {2}cell {4}23\.7,90\.4, /)
    t.match(alone.stdout, /\n {2}purged {5}softly: stale at any age\n/)
    t.notMatch(alone.stdout, /fresh until|last error/, 'what only a gateway knows is left out')
    const aloneJson = JSON.parse((await runCommand(['cache', 'show', 'district/3026', '--json'], env)).stdout)
    t.match(aloneJson, { opsUrl: null, gateway: null, shared: { entry: { purged: 'soft' } } })
    t.equal(aloneJson.shared.entry.fetchedAt, report.shared.entry.fetchedAt)

    const purged = await runCommand(['cache', 'purge', 'all', '--hard'], env)
    t.match(purged, { code: 0, stderr: '' })
    t.match(
      purged.stdout,
      /^Purged hard: everything\.\n {2}covers {7}3,976 cells\n {2}shared tier {2}1 entry removed\n/,
    )
    t.match(purged.stdout, 'within a second')
    t.match(
      (await runCommand(['cache', 'show', 'district/3026'], env)).stdout,
      /Nothing is in the shared tier \(embedded\)\./,
    )
  },
)

t.test(
  'warm --force loads one cell in the gateway whatever is cached, and ends with 1 if that failed',
  async t => {
    const provider = await startProvider(t, undefined, null)
    const token = '0123456789abcdef0123456789abcdef'
    const env = await singleGatewayEnv(t, provider.url, {
      ABOHAWA_OPS__TOKEN: token,
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    })
    const gateway = await startCommand(t, ['serve'], ['ops'], env)
    const refresh = (...args: string[]) => runCommand(['cache', 'warm', '--force', ...args], env)
    const { calls } = await provider.state()
    const first = await refresh('district/3026')
    t.match(first, { code: 0, stderr: '' })
    t.match(first.stdout, /^Dhaka \(district 3026\)\n {2}cell +23\.7,90\.4, /)
    t.match(first.stdout, /\n {2}state +fresh +fresh\n/)
    const again = await refresh('23.71,90.41', '--json', '--gateway', gateway.urls.ops ?? '')
    const report = JSON.parse(again.stdout)
    t.match(report, {
      opsUrl: gateway.urls.ops,
      cell: { id: '23.7,90.4' },
      gateway: { memory: { state: 'fresh' }, lastFailure: null },
    })
    t.equal((await provider.state()).calls, calls + 2, 'although the first one is fresh')

    await provider.steer({ fault: 'internal-error' })
    const failed = await refresh('district/3026', '--json')
    t.equal(failed.code, 1)
    t.match(
      failed.stderr,
      /^The cell 23\.7,90\.4 was not loaded: provider_failing: the provider answered 500.*\.\n$/,
    )
    t.match(JSON.parse(failed.stdout).gateway, {
      memory: { state: 'fresh', fetchedAt: report.gateway.memory.fetchedAt },
      lastFailure: { code: 'provider_failing' },
    })
    t.match(await refresh('district/9'), {
      code: 1,
      stdout: '',
      stderr: 'abohawa: the district "9" was not found or is not published\n',
    })
    const without = await runCommand(['cache', 'warm', '--force', 'district/3026'], {
      ...env,
      ABOHAWA_OPS__TOKEN: '',
    })
    t.equal(without.code, 1)
    t.match(
      without.stderr,
      /^abohawa: the gateway at .* refused: the authorization header is missing; .*; set ops\.token \(ABOHAWA_OPS__TOKEN\) to .*\n$/,
    )
  },
)

t.test('a server that is no gateway is reported differently from no response', async t => {
  const provider = await startProvider(t)
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  await useStore(env)
  const { code, stderr } = await runCommand(['cache', 'show', '23.81,90.41', '--gateway', provider.url], env)
  t.equal(code, 1)
  t.equal(
    stderr,
    `abohawa: --gateway is ${provider.url}, where no gateway answers: it answered 404, and is no gateway of this version\n`,
  )
})

t.test('a gateway that refuses the host name says which setting allows it', async t => {
  const error = 'the host header is "gw:9090"; allowed: an IP address and the names in ops.allowedHosts'
  const gateway = await startScriptedProvider(t, (_request, response) => {
    response.statusCode = 403
    response.end(JSON.stringify({ error }))
  })
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  await useStore(env)
  const { code, stderr } = await runCommand(['cache', 'show', 'district/3026', '--gateway', gateway.url], env)
  t.strictSame(
    { code, stderr },
    { code: 1, stderr: `abohawa: the gateway at ${gateway.url} refused: ${error}\n` },
  )
})

t.test('an address of --gateway without a gateway is an error', async t => {
  const provider = await startProvider(t)
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  const cases: [url: string, args: string[], reason: RegExp][] = [
    ['http://127.0.0.1:9', ['status'], /ECONNREFUSED/],
    [
      provider.url.replace('http:', 'https:'),
      ['cache', 'show', 'district/3026'],
      / answers: it speaks plain HTTP; allowed: http:\/\/ in place of https:\/\/\n$/,
    ],
  ]
  for (const [url, args, reason] of cases) {
    const { code, stdout, stderr } = await runCommand([...args, '--gateway', url], env)
    t.strictSame([code, stdout], [1, ''], `${args.join(' ')} ${url}`)
    t.ok(stderr.startsWith(`abohawa: --gateway is ${url}, where no gateway answers: `), stderr)
    t.match(stderr, reason)
  }
})
