// Settings that are right and do nothing: told where somebody gave them, and only while they do nothing.

import { join } from 'node:path'
import t from 'tap'
import { variableOf } from '../../src/config/environment.ts'
import { explainPath } from '../../src/config/explain.ts'
import { readConfig } from '../../src/config/load.ts'
import { settings } from '../../src/config/tree.ts'
import { givenWithoutEffect, withoutEffect } from '../../src/config/without-effect.ts'

const read = (given: Record<string, string>) =>
  readConfig({
    files: [],
    env: Object.fromEntries(
      Object.entries(given).map(([path, value]) => [variableOf(path.split('.')), value]),
    ),
  })

const unlimited = {
  'provider.budget.perMinute': '',
  'provider.budget.perHour': '',
  'provider.budget.perDay': '',
}

/** Settings for nothing, and what gives them an effect. */
const rows: [idle: Record<string, string>, reason: RegExp, effective: Record<string, string>][] = [
  [{ 'cache.freshFor': '30m' }, /cache\.freshness is run/, { 'cache.freshness': 'age' }],
  [{ 'cache.freshFor': '30m' }, /cache\.freshness is run/, { 'cache.freshForAtMost': '20m' }],
  [{ 'cache.settleFor': '1m', 'cache.freshness': 'age' }, /is age/, { 'cache.freshness': 'run' }],
  [{ 'provider.runs.pollEvery': '1m', 'cache.freshness': 'age' }, /is age/, { 'cache.freshness': 'run' }],
  [
    { 'cache.freshForAtMost': '9h', 'cache.freshness': 'age', ...unlimited },
    /never stretched/,
    { 'provider.budget.perDay': '10000' },
  ],
  [{ 'cache.prefetchPlaces': '9' }, /prefetch is none/, { 'cache.prefetch': 'population' }],
  [{ 'provider.budget.keyShare': '0.5', ...unlimited }, /no limits/, { 'provider.budget.perDay': '10000' }],
  [
    { 'provider.budget.outageShare': '0.1', 'server.reusePort': 'true', ...unlimited },
    /no limits/,
    { 'provider.budget.perDay': '10000' },
  ],
  [
    { 'provider.budget.outageShare': '0.1' },
    /no other process shares the store/,
    { 'server.reusePort': 'true' },
  ],
  [{ 'provider.retryDelay': '1s', 'provider.retries': '0' }, /retries is 0/, { 'provider.retries': '1' }],
  [
    { 'server.tls.ticketKey': 'a' },
    /tls\.cert is not set/,
    { 'server.tls.cert': 'a', 'server.tls.key': 'b' },
  ],
  [
    { 'server.tls.http2': 'false' },
    /tls\.cert is not set/,
    { 'server.tls.cert': 'a', 'server.tls.key': 'b' },
  ],
  [{ 'status.maxConnections': '9' }, /no such listener/, { 'status.port': '9091' }],
  [{ 'redis.prefix': 'a:' }, /redis\.url is not set/, { 'redis.url': 'redis://a' }],
  [{ 'store.path': 'a.db', 'redis.url': 'redis://a' }, /Redis is the store/, { 'redis.url': '' }],
  [{ 'log.access': 'true', 'log.level': 'warn' }, /log\.level is warn/, { 'log.level': 'info' }],
  [{ 'log.accessShare': '0.5', 'log.access': 'false' }, /log\.access is false/, { 'log.access': 'true' }],
  [{ 'config.pollEvery': '2s', 'config.watch': 'false' }, /watch is false/, { 'config.watch': 'true' }],
]

for (const [idle, reason, effective] of rows) {
  const [path = ''] = Object.keys(idle)
  t.test(`${path} for nothing is told, and not with ${Object.keys(effective)[0]}`, async t => {
    const told = (given: Record<string, string>) =>
      givenWithoutEffect(read(given)).find(each => each.path === path)?.sentence
    const variable = variableOf(path.split('.'))
    t.ok(told(idle)?.startsWith(`${variable}: ${path} has no effect: `), String(told(idle)))
    t.match(told(idle), reason)
    t.equal(told({ ...idle, ...effective }), undefined)
    t.match(explainPath(read(idle), path)[0]?.withoutEffect, reason)
  })
}

t.test("defaults are nobody's, and explained all the same; an empty file is told", async t => {
  t.strictSame(givenWithoutEffect(read({})), [])
  t.ok(explainPath(read({}), 'cache.freshFor')[0]?.withoutEffect)
  const file = join(t.testdir({ 'a.yaml': '# nothing\n' }), 'a.yaml')
  t.match(givenWithoutEffect(readConfig({ files: [file], env: {} })), [{ file, sentence: /sets nothing$/ }])
})

t.test('every path is one of a setting', async t => {
  const known = new Set(settings.map(({ path }) => path.join('.')))
  for (const given of rows.map(([idle]) => idle))
    for (const path of withoutEffect(read(given).config).keys()) t.ok(known.has(path), path)
})
