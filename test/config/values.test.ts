// Without this, a setting could accept a wrong value, or refuse it without saying what is allowed.

import t from 'tap'
import { parse } from 'yaml'
import { printPath, settings } from '../../src/config/tree.ts'
import { faultsOfEach, faultsOfTexts, loadTexts } from './load-text.ts'

const FREE = ' (0 picks a free port)'
const HOST = 'an IP address or a host name, such as 127.0.0.1 or localhost'
const RANGE = 'an IP address or a CIDR range from its first address on, such as 10.0.0.0/8'
const CELL = '1/n degrees for a whole n from 1 to 100, such as 1, 0.5, 0.25, 0.2, 0.1, 0.05 or 0.01'
const BASE_URL = 'an http or https URL without user, query or fragment'
const REDIS_URL =
  'a redis:// or rediss:// URL, its path empty or the number of a database and its password with @ / ? # as %40 %2F %3F %23, or null for the embedded store'
const ZONE = 'a time zone of the IANA database, such as Asia/Dhaka'
const UPSTREAMS = 'a list of up to 8 upstreams, such as [{ baseUrl: "https://api.open-meteo.com" }]'
const API_KEY =
  'text without blanks and without quotes as a part of it (in quotes if it is all digits), or null'
const TOKEN =
  '32 to 256 characters of A-Z a-z 0-9 - . _ ~ + / with = at the end only, at least 8 different ones ' +
  '(in quotes if it is all digits; openssl rand -hex 32 makes one), or null'
const half = '0123456789abcdef'
const DURATIONS = 'such as 500ms, 30s, 10m, 1h or 400d'

/** A wrong value as YAML; with how it is shown where that is not the value itself, and what is allowed where a hint follows. */
type Wrong = string | readonly [yaml: string, shown: string, allowed?: string]
type Row = { allowed: string; wrong: readonly Wrong[]; path?: string }

const row = (allowed: string, ...wrong: Wrong[]): Row => ({ allowed, wrong })

/** A value as a sentence repeats it. */
const shownOf = (yaml: string): string => {
  const value: unknown = parse(yaml)
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' && value !== null ? 'a map' : String(value)
}
/** A secret is not repeated. */
const hidden = (yaml: string): Wrong => [yaml, typeof parse(yaml) === 'string' ? '"***"' : '***']

const duration = (min: string, max: string, ...wrong: string[]): Row => {
  const range = `a duration from ${min} to ${max}`
  const hint = `${range}: add the unit, as in 10s or 10m`
  const numbers: Wrong[] = [
    ['10', '10', hint],
    ['"10"', '"10"', hint],
  ]
  return row(`${range}, ${DURATIONS}`, ...wrong, 'soon', ...numbers, '-1s', 'null')
}
const whole = (min: number, max: number, more = ''): Row =>
  row(
    `a whole number from ${min} to ${max}${more}`,
    ...[`${min - 1}`, `${max + 1}`, '1.5', '-0.5', '"2"', '.nan', 'null'],
  )
const oneOf = (words: string): Row => row(`one of ${words}`, 'never', '1', 'null')
const share = (max: number, ...wrong: string[]): Row => row(`a number from 0 to ${max}`, '-0.1', ...wrong)
const flag = row('true or false', '"yes"', 'no', '1', 'null')
const file = row('a file path, or null', '5', '""', '" "', 'true', '[a]')
const weightLimit = row('a whole number from 1 to 1000000000, or null for no limit', '0', '1.5', '"600"')

const table: Record<string, Row> = {
  'server.host': row(HOST, '""', '5', 'a b', '1.2.3.400', '"[::1]"', 'a..b'),
  'server.port': whole(0, 65535, FREE),
  'server.reusePort': flag,
  'server.tls.cert': file,
  'server.tls.key': file,
  'server.tls.ticketKey': file,
  'server.tls.http2': flag,
  'server.trustedProxies': row(
    'a list of IP addresses and CIDR ranges, such as [10.0.0.0/8]',
    ...['10.0.0.1', 'null', '{}'],
  ),
  'server.publicUrl': row(`${BASE_URL}, or null`, ...['weather.example.org', '"https://a/\\""', '1'], [
    'https://a/?b=c',
    '"https://a/?***"',
  ]),
  'server.statusPage': flag,
  'server.cors.origins': row(
    'a list of origins, each with a scheme and a host, or ["*"] for any',
    ...['https://app.example.org', '"*"', 'null'],
  ),
  'server.keepAliveTimeout': duration('1s', '24h', '999ms', '25h'),
  'server.maxConnections': whole(1, 1_000_000),
  'server.maxConnectionsPerAddress': whole(1, 1_000_000),
  'server.drainFor': duration('0s', '10m', '601s'),
  'ops.host': row(HOST, '""', 'http://a'),
  'ops.port': whole(0, 65535, FREE),
  'ops.allowedHosts': row(
    'a list of host names and IP addresses, such as [ops.example.org]',
    ...['ops.example.org', 'null', '{}'],
  ),
  'ops.token': row(
    TOKEN,
    ...['secret', '""', 'true', '01234567890123456789012345678901', 'changeme'.repeat(4)].map(hidden),
    ...[half.slice(1), ` ${half}`, `=${half}`, `,${half}`, `${half.slice(1)}é`, `${half.repeat(15)}0`].map(
      rest => hidden(`"${half}${rest}"`),
    ),
  ),
  'health.host': row(HOST, '""', 'null'),
  'health.port': row(
    `a whole number from 0 to 65535${FREE}, or null for no such listener`,
    ...['-1', '65536', '"9091"'],
  ),
  'redis.url': row(
    REDIS_URL,
    ...['http://a', 'redis://', 'localhost:6379', 'redis://a:99999', 'redis://a/abc', 'redis://a#b', '6379'],
    ['redis://a?b@c', '"redis://***@c"'],
    ['redis://a:b@c/d@e', '"redis://***@e"'],
  ),
  'redis.mode': oneOf('single, sentinel, cluster'),
  'redis.nodes': row('a list of hosts with ports, such as [redis-2:6379]', ...['redis-2:6379', 'null', '{}']),
  'redis.sentinelMaster': row(
    'the name of a master group, such as mymaster, or null',
    ...['""', 'my master', '5'],
  ),
  'redis.sentinelPassword': row(
    'text without blanks (in quotes if it is all digits), or null',
    ...['""', 'a b', '5'].map(hidden),
  ),
  'redis.ca': file,
  'redis.prefix': row('1 to 64 letters, digits and the signs : . _ -', '""', 'a b', '"{a}"', 'null'),
  'redis.commandTimeout': duration('10ms', '1m', '9ms', '61s'),
  'store.path': row('a file path', '""', 'null', '1'),
  'provider.baseUrl': row(
    BASE_URL,
    ...['ftp://a', 'api.open-meteo.com', 'https://', 'https:///', '"https://a/#b"', 'https://a b', 'null'],
    ['https://a/?b=c', '"https://a/?***"'],
  ),
  'provider.protocol': oneOf('open-meteo'),
  'provider.apiKey': row(API_KEY, ...['12345', 'a b', '""'].map(hidden)),
  'provider.timeout': duration('10ms', '2m', '9ms', '121s'),
  'provider.maxConcurrent': whole(1, 256),
  'provider.maxPointsPerRequest': whole(1, 1000),
  'provider.budget.perMinute': weightLimit,
  'provider.budget.perHour': weightLimit,
  'provider.budget.perDay': weightLimit,
  'provider.budget.reserve': share(0.9, '1', 'some'),
  'provider.budget.keyShare': share(1, '1.01', 'some'),
  'provider.fallbacks': row(UPSTREAMS, 'null', '{}', hidden('https://a')),
  'catalogue.path': file,
  'cache.cellDegrees': row(CELL, '0', '-1', '0.3', '2', '0.009', '"0.1"', '.nan'),
  'cache.freshness': oneOf('age, run'),
  'cache.freshFor': duration('100ms', '48h', '99ms', '49h'),
  'cache.freshForAtMost': duration('100ms', '48h', '99ms', '49h'),
  'cache.staleFor': duration('0s', '48h', '49h'),
  'cache.prefetchPlaces': whole(0, 100_000, ' (0 keeps none)'),
  'cache.memory': row(
    'a size from 64KiB to 64GiB, such as 512KiB, 64MiB, 1GiB or 10MB',
    ...['1KiB', '65GiB', '64mb', '99999999999999999999GiB'],
    ['64', '64', 'a size from 64KiB to 64GiB: add the unit, as in 64KiB or 64MiB'],
  ),
  'weather.hourlyHours': whole(1, 168),
  'quota.timeZone': row(ZONE, 'Asia/Nowhere', '"+06:00"', '6', 'null'),
  'quota.tiers': {
    ...row('a whole number of at least 1', '0', '1.5', 'many', 'null'),
    path: 'quota.tiers.gold',
  },
  'quota.rates': {
    ...row('a map of perSecond, burst, perMinute', '10', 'fast', '[1]'),
    path: 'quota.rates.free',
  },
  'quota.notModifiedCost': share(1, '1.1', '10%'),
  'quota.whenStoreIsDown': oneOf('share, refuse'),
  'quota.keepUsageFor': duration('2d', '4000d', '47h', '4001d'),
  'log.file': file,
  'log.level': row('one of trace, debug, info, warn, error, fatal, silent', 'loud', 'INFO', '5', 'null'),
  'log.access': row('true, false or a number from 0 to 1', '1.1', '-1', '10%', 'yes', 'null'),
  'log.clientAddress': oneOf('full, prefix, none'),
}

t.test('every setting has its rows here', async t => {
  t.strictSame(
    Object.keys(table),
    settings.map(({ path }) => printPath(path)),
  )
})

for (const [setting, { path = setting, allowed, wrong }] of Object.entries(table))
  t.test(`${setting}: a wrong value is refused with its place, itself and what is allowed`, async t => {
    const keys = path.split('.')
    const lines = keys.map((key, depth) => `${'  '.repeat(depth)}${key}:`)
    const column = (lines.at(-1)?.length ?? 0) + 2
    const cases = wrong.map(each => (typeof each === 'string' ? ([each, shownOf(each)] as const) : each))
    t.strictSame(
      faultsOfEach(
        t,
        cases.map(([yaml]) => `# first line\n${lines.join('\n')} ${yaml}\n`),
      ),
      cases.map(([_, shown, instead = allowed]) => [
        `one.yaml:${keys.length + 1}:${column}: ${path} must be ${instead}, got ${shown}`,
      ]),
    )
  })

t.test('origins are written as browsers send them', async t => {
  const wrong =
    `https://a.example/ HTTPS://a.example https://a.example:443 https://*.a.example/x a.example null
    https://* https://a.*.example https://*.example javascript://x data://x https://a*.example ws://a.example
    file://a capacitor://localhost/ https://*.0.0.1`.split(/\s+/)
  const origins = wrong.map(each => `      - "${each}"`).join('\n')
  const faults = faultsOfTexts(t, { files: [`server:\n  cors:\n    origins:\n${origins}`] })
  const right = '["https://*.a.example", "http://*.a.example:81", "capacitor://localhost", "x-app://a:1"]'
  t.strictSame(faultsOfTexts(t, { files: [`server: { cors: { origins: ${right} } }`] }), [])
  t.strictSame(
    faults.map(fault => /origins\[(\d+)\] must be an origin as browsers send it/.exec(fault)?.[1]),
    wrong.map((_, index) => String(index)),
  )
})

t.test('a wrong item of a list is named by its number, with what is allowed', async t => {
  const NODE = 'a host and a port, such as redis-2:6379 or [fd00::2]:6379'
  const NODES = 'a:1, "[fd00::2]:6379", a, "a:0", a:99999, a:1/2, me@a:1, redis://a:1, ":1"'
  const RANGES = '10.0.0.1, "fd00::/8", 10.0.0.0/33, "fd00::/129", 1.2.3.4/8/8, proxy, "fe80::1%eth0"'
  // The first two are right.
  for (const [path, before, items, allowed] of [
    ['server.trustedProxies', 'server: { ', RANGES, RANGE],
    ['ops.allowedHosts', 'ops: { ', 'ops.example, "::1", "a:9090", "http://a", "*"', HOST],
    ['redis.nodes', 'redis: { url: redis://one, mode: cluster, ', NODES, NODE],
  ] as const) {
    const head = `${before}${path.split('.')[1]}: [`
    const faults = faultsOfTexts(t, { files: [`${head}${items}] }`] })
    const shown = items.split(', ').map(item => (item.startsWith('"') ? item : `"${item}"`))
    t.strictSame(
      faults.map(fault => fault.replace(/^\S+ /, '')),
      shown.slice(2).map((each, i) => `${path}[${i + 2}] must be ${allowed}, got ${each}`),
    )
    const column = head.length + items.split(', ', 2).join(', ').length + 3
    t.match(faults[0], `one.yaml:1:${column}: `, path)
  }
})

t.test('the bounds of a range are allowed', async t => {
  const text =
    'server: { port: 65535, drainFor: 10m }\nops: { port: 0 }\n' +
    'provider: { maxPointsPerRequest: 1000 }\nweather: { hourlyHours: 168 }\n' +
    'cache: { freshFor: 48h, staleFor: 0s, memory: 64KiB }\nquota: { keepUsageFor: 2d, tiers: { one: 1 } }'
  t.match(loadTexts(t, { files: [text] }), {
    server: { port: 65535, drainForMs: 600_000 },
    cache: { freshForMs: 172_800_000, staleForMs: 0, memoryBytes: 65_536 },
  })
})
