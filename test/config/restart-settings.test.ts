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

/** What is in effect before, where it is not the default, and what it is changed to. */
type Row = readonly [before: Record<string, string>, after: Record<string, string>]

const table: Record<string, Row> = {
  'server.host': [{}, { 'server.host': 'localhost' }],
  'server.port': [{}, { 'server.port': '1' }],
  'server.reusePort': [{}, { 'server.reusePort': 'true' }],
  'server.tls.http2': [{}, { 'server.tls.http2': 'false' }],
  'server.trustedProxies': [{}, { 'server.trustedProxies': '10.0.0.1' }],
  'server.publicUrl': [{}, { 'server.publicUrl': 'https://weather.example' }],
  'server.requestTimeout': [{}, { 'server.requestTimeout': '20s' }],
  'server.keepAliveTimeout': [{}, { 'server.keepAliveTimeout': '80s' }],
  'server.drainFor': [{}, { 'server.drainFor': '1s' }],
  'ops.host': [{}, { 'ops.host': 'localhost' }],
  'ops.port': [{}, { 'ops.port': '1' }],
  'ops.allowedHosts': [{}, { 'ops.allowedHosts': 'ops.example.org' }],
  'ops.token': [{}, { 'ops.token': '0123456789-abcdefghijklmnopqrstuv' }],
  'health.host': [{}, { 'health.host': 'localhost' }],
  'health.port': [{}, { 'health.port': '1' }],
  'redis.url': [{}, redis],
  'redis.mode': [redis, { ...redis, 'redis.mode': 'cluster' }],
  'redis.nodes': [
    { ...redis, 'redis.mode': 'cluster' },
    { ...redis, 'redis.mode': 'cluster', 'redis.nodes': 'two:1' },
  ],
  'redis.sentinelMaster': [redis, { ...redis, 'redis.mode': 'sentinel', 'redis.sentinelMaster': 'a' }],
  'redis.sentinelPassword': [
    { ...redis, 'redis.mode': 'sentinel', 'redis.sentinelMaster': 'a' },
    { ...redis, 'redis.mode': 'sentinel', 'redis.sentinelMaster': 'a', 'redis.sentinelPassword': 'b' },
  ],
  'redis.ca': [redis, { ...redis, 'redis.ca': fixture('localhost.crt') }],
  'redis.prefix': [redis, { ...redis, 'redis.prefix': 'other:' }],
  'redis.commandTimeout': [redis, { ...redis, 'redis.commandTimeout': '3s' }],
  'store.path': [{}, { 'store.path': '/tmp/abohawa-other.db' }],
  'provider.baseUrl': [{}, { 'provider.baseUrl': 'http://other.example' }],
  'provider.apiKey': [{}, { 'provider.apiKey': 'other' }],
  'provider.timeout': [{}, { 'provider.timeout': '11s' }],
  'provider.maxConcurrent': [{}, { 'provider.maxConcurrent': '2' }],
  'provider.maxPointsPerRequest': [{}, { 'provider.maxPointsPerRequest': '50' }],
  'catalogue.path': [{}, { 'catalogue.path': 'locations.json' }],
  'cache.cellDegrees': [{}, { 'cache.cellDegrees': '0.2' }],
  'cache.freshness': [{}, { 'cache.freshness': 'age' }],
  'cache.prefetchPlaces': [{}, { 'cache.prefetchPlaces': '7' }],
  'cache.memory': [{}, { 'cache.memory': '1MiB' }],
  'weather.hourlyHours': [{}, { 'weather.hourlyHours': '24' }],
  'quota.timeZone': [{}, { 'quota.timeZone': 'UTC' }],
  'quota.whenStoreIsDown': [{}, { 'quota.whenStoreIsDown': 'refuse' }],
  'quota.keepUsageFor': [{}, { 'quota.keepUsageFor': '40d' }],
  'log.file': [{}, { 'log.file': '/tmp/abohawa-other.log' }],
  'log.clientAddress': [{}, { 'log.clientAddress': 'none' }],
  // Live ones, where the change is one of those that are excepted.
  'server.tls.cert': [
    {},
    { 'server.tls.cert': fixture('localhost.crt'), 'server.tls.key': fixture('localhost.key') },
  ],
  'quota.tiers.gold': [{ 'quota.tiers.gold': '7' }, {}],
  ...Object.fromEntries(
    Object.entries({ 'budget.perMinute': '7', 'budget.perDay': '', 'budget.perHour': '1' }).map(
      ([name, value]) => [
        `provider.${name}`,
        [{}, { 'provider.apiKey': 'other', [`provider.${name}`]: value }] as const,
      ],
    ),
  ),
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
