// Without this, a reload could apply half a configuration, or hide that a restart is needed.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { variableOf } from '../../src/config/environment.ts'
import { readConfig } from '../../src/config/load.ts'
import { createReload, type ReloadOptions } from '../../src/config/reload.ts'
import type { Config } from '../../src/config/schema.ts'
import { settingsThatNeedRestart } from '../../src/provider/accounts.ts'
import { manualClock } from '../support/manual-clock.ts'

type Parts = Partial<Pick<ReloadOptions, 'prepare' | 'apply'>> & { given?: Record<string, string> }

const setUp = (t: Test, { prepare = async () => [], apply = () => {}, given = {} }: Parts = {}) => {
  const folder = t.testdir()
  const env: NodeJS.ProcessEnv = { ABOHAWA_STORE__PATH: `${folder}/a.db`, ...given }
  const told: unknown[] = []
  const read = () => readConfig({ files: [], env })
  const running = read().config
  const reload = createReload({
    running,
    read,
    prepare,
    apply,
    needRestart: next => settingsThatNeedRestart(running, next),
    clock: manualClock(),
    observer: {
      onApplied: changes => told.push(changes.map(({ path, after }) => `${path}: ${after}`)),
      onRestartNeeded: paths => told.push({ restart: paths }),
      onRefused: reason => told.push({ refused: reason }),
      onOutcome: outcome => told.push(outcome),
    },
  })
  return { env, told, reload, folder }
}

t.test('live changes are applied together, and the others are named and left', async t => {
  const applied: Config[] = []
  const { reload, told, env } = setUp(t, { apply: next => applied.push(next) })
  Object.assign(env, {
    ABOHAWA_CACHE__FRESH_FOR: '2h',
    ABOHAWA_QUOTA__TIERS__GOLD: '7',
    ABOHAWA_SERVER__PORT: '1',
    ABOHAWA_CACHE__MEMORY: '1MiB',
  })
  t.equal(await reload.now(), 'applied')
  t.strictSame(told, [
    ['cache.freshFor: 2h', 'quota.tiers.gold: 7'],
    { restart: ['server.port', 'cache.memory'] },
    'applied',
  ])
  const [next] = applied
  t.match(next, { server: { port: 8080 }, cache: { freshForMs: 7_200_000, memoryBytes: 64 * 2 ** 20 } })
  t.equal(reload.running(), next)
  t.strictSame(reload.restartNeeded(), ['server.port', 'cache.memory'])
  delete env.ABOHAWA_SERVER__PORT
  delete env.ABOHAWA_CACHE__MEMORY
  await reload.now()
  t.match(told.at(-2), { restart: [] }, 'taken back')
})

t.test('a budget is live while its upstream has its host and key, and waits with a new one', async t => {
  const fallbacks = (apiKey: string, perDay: number) =>
    JSON.stringify(
      ['http://a', 'http://b'].map((baseUrl, i) => ({
        baseUrl,
        apiKey: i === 0 ? apiKey : 'kept',
        budget: { perDay, reserve: 0.2 },
      })),
    )
  const { reload, told, env } = setUp(t, { given: { ABOHAWA_PROVIDER__FALLBACKS: fallbacks('one', 5) } })
  Object.assign(env, {
    ABOHAWA_PROVIDER__FALLBACKS: fallbacks('other', 6).replaceAll('0.2', '0.3'),
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '7',
  })
  await reload.now()
  const restart = ['apiKey', 'budget.perDay', 'budget.reserve'].map(name => `provider.fallbacks[0].${name}`)
  t.strictSame(told, [
    [
      'provider.budget.perDay: 7',
      'provider.fallbacks[1].budget.perDay: 6',
      'provider.fallbacks[1].budget.reserve: 0.3',
    ],
    { restart },
    'applied',
  ])
  t.hasStrict(reload.running().provider.fallbacks, [
    { apiKey: 'one', budget: { perDay: 5, reserve: 0.2 } },
    { apiKey: 'kept', budget: { perDay: 6, reserve: 0.3 } },
  ])
  env.ABOHAWA_PROVIDER__FALLBACKS = fallbacks('one', 8)
  await reload.now()
  t.match(told.at(-2), { restart: [] }, 'the former key again')
  t.equal(reload.running().provider.fallbacks[0]?.budget.perDay, 8)
})

t.test('a fault changes nothing, and is remembered until the configuration is right', async t => {
  let applied = 0
  const { reload, told, env } = setUp(t, {
    apply: () => {
      applied += 1
    },
  })
  const before = reload.running()
  Object.assign(env, { ABOHAWA_CACHE__FRESH_FOR: '2h', ABOHAWA_SERVER__PORT: 'x' })
  t.equal(await reload.now(), 'refused')
  t.equal(applied, 0)
  t.equal(reload.running(), before)
  t.strictSame(told, [{ refused: 'ABOHAWA_SERVER__PORT: server.port is invalid' }, 'refused'])
  t.equal(reload.fault(), 'ABOHAWA_SERVER__PORT: server.port is invalid')
  delete env.ABOHAWA_SERVER__PORT
  t.equal(await reload.now(), 'applied')
  t.equal(reload.fault(), undefined)
})

t.test('files that a configuration names are checked before anything is replaced', async t => {
  const { reload, told, env, folder } = setUp(t, { apply: () => t.fail('nothing is applied') })
  for (const [variable, value, sentence] of [
    ['ABOHAWA_STORE__PATH', '/dev/null/a.db', 'ABOHAWA_STORE__PATH: store.path is invalid'],
    ['ABOHAWA_CATALOGUE__PATH', `${folder}/none.json`, 'ABOHAWA_CATALOGUE__PATH: catalogue.path is invalid'],
  ] as const) {
    const former = env[variable]
    Object.assign(env, { ABOHAWA_CACHE__FRESH_FOR: '2h', [variable]: value })
    t.equal(await reload.now(), 'refused')
    t.hasStrict(told.at(-2), { refused: sentence })
    if (former === undefined) delete env[variable]
    else env[variable] = former
  }
})

t.test("what is prepared is replaced, and where one thing can't be prepared nothing is", async t => {
  const steps: string[] = []
  let fault: Error | undefined
  const { reload, told, env } = setUp(t, {
    prepare: async () => {
      if (fault) throw fault
      return [() => steps.push('certificate')]
    },
    apply: () => steps.push('settings'),
  })
  t.equal(await reload.now(), 'applied')
  t.strictSame(steps, ['certificate'], 'although no setting has changed')
  fault = new Error('no such thing')
  env.ABOHAWA_CACHE__FRESH_FOR = '2h'
  t.equal(await reload.now(), 'refused')
  t.strictSame(steps, ['certificate'])
  t.hasStrict(told.slice(-2), [{ refused: 'no such thing' }, 'refused'])
  t.equal(reload.running().cache.freshForMs, 3_600_000)
})

t.test('what was refused is tried again in silence, until it is in effect', async t => {
  let fault: string | undefined = 'the certificate is missing'
  const { reload, told } = setUp(t, {
    prepare: async () => {
      if (fault !== undefined) throw new Error(fault)
      return []
    },
  })
  await reload.again()
  t.strictSame(told, [], 'nothing was refused')
  await reload.now()
  t.strictSame(told.splice(0), [{ refused: fault }, 'refused'])
  await reload.again()
  await reload.again()
  t.strictSame(told, [])
  await reload.now()
  t.strictSame(told.splice(0), [{ refused: fault }, 'refused'], 'whoever asks is told')
  fault = 'the key is missing'
  await reload.again()
  t.strictSame(told, [])
  t.equal(reload.fault(), fault)
  fault = undefined
  await reload.again()
  t.strictSame(told, [[], 'applied'], 'its end is told, although nothing differs')
  t.equal(reload.fault(), undefined)
  t.equal(await reload.now(), 'unchanged')
})

const redis = { 'redis.url': 'rediss://one' }
const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)

/** What is in effect before, where it is not the default, and what it is changed to. */
type Row = readonly [before: Record<string, string>, after: Record<string, string>]

const changed = (path: string, value: string): Row => [{}, { [path]: value }]
const withKey = (path: string, value: string): Row => [{}, { 'provider.apiKey': 'other', [path]: value }]
// Some of those that are not declared live: test/journeys/live-settings.test.ts has a proof of each that is.
const table: Record<string, Row> = {
  'server.trustedProxies': changed('server.trustedProxies', '10.0.0.1'),
  'health.port': changed('health.port', '1'),
  'store.path': changed('store.path', '/tmp/abohawa-other.db'),
  'log.file': changed('log.file', '/tmp/abohawa-other.log'),
  'provider.baseUrl': changed('provider.baseUrl', 'http://other.example'),
  'redis.url': [{}, redis],
  'redis.ca': [redis, { ...redis, 'redis.ca': fixture('localhost.crt') }],
  // Live ones, where the change is one of those that are excepted.
  'server.tls.cert': [
    {},
    { 'server.tls.cert': fixture('localhost.crt'), 'server.tls.key': fixture('localhost.key') },
  ],
  'quota.tiers.gold': [{ 'quota.tiers.gold': '7' }, {}],
  'provider.budget.perMinute': withKey('provider.budget.perMinute', '7'),
  'provider.budget.perDay': withKey('provider.budget.perDay', ''),
  'provider.budget.perHour': withKey('provider.budget.perHour', '1'),
}

const variables = (given: Record<string, string>) =>
  Object.fromEntries(Object.entries(given).map(([path, value]) => [variableOf(path.split('.')), value]))

for (const [path, [before, after]] of Object.entries(table))
  t.test(`a change of ${path} is named, and does nothing`, async t => {
    const given = variables(before)
    const { env, told, reload } = setUp(t, { given, apply: () => t.fail('nothing is applied') })
    const first = env.ABOHAWA_STORE__PATH
    const change = (to: Record<string, string>) => {
      for (const name of Object.keys(env)) delete env[name]
      Object.assign(env, { ABOHAWA_STORE__PATH: first, ...variables(to) })
      return reload.now()
    }
    t.equal(await change(after), 'unchanged')
    const [{ restart }, ...rest] = told as [{ restart: string[] }]
    t.ok(restart.includes(path), String(restart))
    t.strictSame(rest, ['unchanged'])
    await change(before)
    t.match(told.at(-2), { restart: [] }, 'and taken back')
  })
