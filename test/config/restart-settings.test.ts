// Every setting that is not declared live: a change of it is named as one that needs a restart, and does nothing else.

import { join } from 'node:path'
import t from 'tap'
import { variableOf } from '../../src/config/environment.ts'
import { readConfig } from '../../src/config/load.ts'
import { createReload } from '../../src/config/reload.ts'
import { settings } from '../../src/config/tree.ts'
import { effectOf } from '../../src/config/values.ts'
import { settingsThatNeedRestart } from '../../src/provider/account.ts'
import { manualClock } from '../support/manual-clock.ts'

const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)
const redis = { 'redis.url': 'rediss://one' }

const cluster = { ...redis, 'redis.mode': 'cluster' }
const sentinel = { ...redis, 'redis.mode': 'sentinel', 'redis.sentinelMaster': 'a' }

/** Another value of each setting, where no others are needed beside it. */
const others: Record<string, string> = {
  ...{ 'server.host': 'localhost', 'server.port': '1', 'server.reusePort': 'true' },
  ...{ 'server.tls.http2': 'false', 'server.trustedProxies': '10.0.0.1', 'server.drainFor': '1s' },
  ...{ 'server.publicUrl': 'https://weather.example', 'server.requestTimeout': '20s' },
  ...{ 'server.keepAliveTimeout': '80s', 'ops.host': 'localhost', 'ops.port': '1' },
  ...{ 'ops.allowedHosts': 'ops.example.org', 'ops.token': '0123456789-abcdefghijklmnopqrstuv' },
  ...{ 'health.host': 'localhost', 'health.port': '1', 'store.path': '/tmp/abohawa-other.db' },
  ...{ 'provider.baseUrl': 'http://other.example', 'provider.apiKey': 'other', 'provider.timeout': '11s' },
  ...{ 'provider.maxConcurrent': '2', 'provider.maxPointsPerRequest': '50' },
  ...{ 'catalogue.path': 'locations.json', 'cache.cellDegrees': '0.2', 'cache.freshness': 'age' },
  ...{ 'cache.prefetchPlaces': '7', 'cache.memory': '1MiB', 'weather.hourlyHours': '24' },
  ...{ 'quota.timeZone': 'UTC', 'quota.whenStoreIsDown': 'refuse', 'quota.keepUsageFor': '40d' },
  ...{ 'log.file': '/tmp/abohawa-other.log', 'log.clientAddress': 'none' },
}

/** What is in effect before, where it is not the default, and what it is changed to. */
type Row = readonly [before: Record<string, string>, after: Record<string, string>]

const withKey = (path: string, value: string): Row => [{}, { 'provider.apiKey': 'other', [path]: value }]
const table: Record<string, Row> = {
  ...Object.fromEntries(
    Object.entries(others).map(([path, value]): [string, Row] => [path, [{}, { [path]: value }]]),
  ),
  'redis.url': [{}, redis],
  'redis.mode': [redis, cluster],
  'redis.nodes': [cluster, { ...cluster, 'redis.nodes': 'two:1' }],
  'redis.sentinelMaster': [redis, sentinel],
  'redis.sentinelPassword': [sentinel, { ...sentinel, 'redis.sentinelPassword': 'b' }],
  'redis.ca': [redis, { ...redis, 'redis.ca': fixture('localhost.crt') }],
  'redis.prefix': [redis, { ...redis, 'redis.prefix': 'other:' }],
  'redis.commandTimeout': [redis, { ...redis, 'redis.commandTimeout': '3s' }],
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

t.test('every setting that needs a restart has its row here', async t => {
  const restart = settings
    .filter(setting => effectOf(setting) === 'restart')
    .map(({ path }) => path.join('.'))
  t.strictSame(
    restart.filter(path => !(path in table)),
    [],
  )
  t.ok(restart.length > 25, `${restart.length} settings`)
})

for (const [path, [before, after]] of Object.entries(table))
  t.test(`a change of ${path} is named, and does nothing`, async t => {
    const folder = t.testdir()
    let given = before
    const read = () =>
      readConfig({ files: [], env: { ABOHAWA_STORE__PATH: `${folder}/a.db`, ...variables(given) } })
    const named: string[][] = []
    const refused: string[] = []
    const running = read().config
    const reload = createReload({
      running,
      read,
      prepare: async () => [],
      apply: () => t.fail('nothing is applied'),
      needRestart: next => settingsThatNeedRestart(running, next),
      clock: manualClock(),
      observer: {
        onApplied: () => t.fail('nothing is applied'),
        onRestartNeeded: paths => named.push([...paths]),
        onRefused: reason => refused.push(reason),
        onOutcome: () => {},
      },
    })
    given = after
    t.equal(await reload.now(), 'unchanged')
    t.strictSame(refused, [])
    t.equal(named.length, 1)
    t.ok(named[0]?.includes(path), String(named))
    given = before
    await reload.now()
    t.strictSame(named[1], [], 'and taken back')
  })
