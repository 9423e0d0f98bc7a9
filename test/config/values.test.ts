// The values that each setting refuses, and the sentence of the refusal.

import t from 'tap'
import { printPath, settings } from '../../src/config/tree.ts'
import { faultsOfEach, faultsOfTexts, loadTexts } from './load-text.ts'

const PORT = 'a whole number from 0 to 65535 (0 picks a free port)'
const HOST = 'an IP address or a host name, such as 127.0.0.1 or localhost'
const RANGE = 'an IP address or a CIDR range such as 10.0.0.0/8'
const CELL = '1/n degrees for a whole n from 1 to 100, such as 1, 0.5, 0.25, 0.2, 0.1, 0.05 or 0.01'
const BASE_URL = 'an http or https URL without user, query or fragment'
const REDIS_URL =
  'a redis:// or rediss:// URL, its path empty or the number of a database and its password with @ / ? # as %40 %2F %3F %23, or null for the embedded store'
const ZONE = 'a time zone of the IANA database, such as Asia/Dhaka'
const API_KEY = 'text without blanks (in quotes if it is all digits), or null'
const TOKEN =
  '32 to 256 characters of A-Z a-z 0-9 - . _ ~ + / with = at the end only, at least 8 different ones ' +
  '(in quotes if it is all digits; openssl rand -hex 32 makes one), or null'
const DURATIONS = 'such as 500ms, 30s, 10m, 1h or 400d'

type Wrong = [yaml: string, shown: string, allowed?: string]
type Row = { allowed: string; wrong: Wrong[]; path?: string }

const duration = (min: string, max: string, ...wrong: string[]): Row => ({
  allowed: `a duration from ${min} to ${max}, ${DURATIONS}`,
  wrong: [
    ...wrong.map(value => [value, `"${value}"`] as Wrong),
    ['soon', '"soon"'],
    ['10', '10', `a duration from ${min} to ${max}: add the unit, as in 10s or 10m`],
    ['"10"', '"10"', `a duration from ${min} to ${max}: add the unit, as in 10s or 10m`],
    ['-1s', '"-1s"'],
    ['null', 'null'],
  ],
})

const whole = (min: number, max: number): Row => ({
  allowed: `a whole number from ${min} to ${max}`,
  wrong: [
    [`${min - 1}`, `${min - 1}`],
    [`${max + 1}`, `${max + 1}`],
    ['1.5', '1.5'],
    ['-0.5', '-0.5'],
    ['"2"', '"2"'],
    ['.nan', 'NaN'],
    ['null', 'null'],
  ],
})

const oneOf = (words: string): Row => ({
  allowed: `one of ${words}`,
  wrong: [
    ['never', '"never"'],
    ['1', '1'],
    ['null', 'null'],
  ],
})

const weightLimit: Row = {
  allowed: 'a whole number from 1 to 1000000000, or null for no limit',
  wrong: [
    ['0', '0'],
    ['1.5', '1.5'],
    ['"600"', '"600"'],
  ],
}

const table: Record<string, Row> = {
  'server.host': {
    allowed: HOST,
    wrong: [
      ['""', '""'],
      ['5', '5'],
      ['a b', '"a b"'],
      ['1.2.3.400', '"1.2.3.400"'],
      ['"[::1]"', '"[::1]"'],
      ['a..b', '"a..b"'],
    ],
  },
  'server.port': { ...whole(0, 65535), allowed: PORT },
  'server.reusePort': {
    allowed: 'true or false',
    wrong: [
      ['"yes"', '"yes"'],
      ['no', '"no"'],
      ['1', '1'],
      ['null', 'null'],
    ],
  },
  'server.tls.cert': {
    allowed: 'a file path, or null',
    wrong: [
      ['5', '5'],
      ['""', '""'],
      ['true', 'true'],
    ],
  },
  'server.tls.key': {
    allowed: 'a file path, or null',
    wrong: [
      ['5', '5'],
      ['" "', '" "'],
      ['[a]', 'a list'],
    ],
  },
  'server.tls.ticketKey': {
    allowed: 'a file path, or null',
    wrong: [
      ['48', '48'],
      ['""', '""'],
      ['[a, b]', 'a list'],
    ],
  },
  'server.tls.http2': {
    allowed: 'true or false',
    wrong: [
      ['"true"', '"true"'],
      ['null', 'null'],
    ],
  },
  'server.trustedProxies': {
    allowed: 'a list of IP addresses and CIDR ranges, such as [10.0.0.0/8]',
    wrong: [
      ['10.0.0.1', '"10.0.0.1"'],
      ['null', 'null'],
      ['{}', 'a map'],
    ],
  },
  'server.publicUrl': {
    allowed: `${BASE_URL}, or null`,
    wrong: [
      ['weather.example.org', '"weather.example.org"'],
      ['https://a/?b=c', '"https://a/?***"'],
      ['"https://a/\\""', '"https://a/\\""'],
      ['1', '1'],
    ],
  },
  'server.cors.origins': {
    allowed: 'a list of origins, each with a scheme and a host, or ["*"] for any',
    wrong: [
      ['https://app.example.org', '"https://app.example.org"'],
      ['"*"', '"*"'],
      ['null', 'null'],
    ],
  },
  'server.requestTimeout': duration('100ms', '10m', '99ms', '11m'),
  'server.keepAliveTimeout': duration('1s', '24h', '999ms', '25h'),
  'server.maxConnections': whole(1, 1_000_000),
  'server.maxConnectionsPerAddress': whole(1, 1_000_000),
  'server.drainFor': duration('0s', '10m', '601s'),
  'ops.host': {
    allowed: HOST,
    wrong: [
      ['""', '""'],
      ['http://a', '"http://a"'],
    ],
  },
  'ops.port': { ...whole(0, 65535), allowed: PORT },
  'ops.allowedHosts': {
    allowed: 'a list of host names and IP addresses, such as [ops.example.org]',
    wrong: [
      ['ops.example.org', '"ops.example.org"'],
      ['null', 'null'],
      ['{}', 'a map'],
    ],
  },
  'ops.token': {
    allowed: TOKEN,
    wrong: [
      ['secret', '"***"'],
      ['""', '"***"'],
      ['0123456789abcdef0123456789abcde', '"***"'],
      ['01234567890123456789012345678901', '***'],
      ['changemechangemechangemechangeme', '"***"'],
      ['0123456789abcdef 0123456789abcdef', '"***"'],
      ['"0123456789abcdef=0123456789abcdef"', '"***"'],
      ['"0123456789abcdef,0123456789abcdef"', '"***"'],
      ['"0123456789abcdef0123456789abcdeé"', '"***"'],
      [`"${'0123456789abcdef'.repeat(16)}0"`, '"***"'],
      ['true', '***'],
    ],
  },
  'health.host': {
    allowed: HOST,
    wrong: [
      ['""', '""'],
      ['null', 'null'],
    ],
  },
  'health.port': {
    allowed: `${PORT}, or null for no such listener`,
    wrong: [
      ['-1', '-1'],
      ['65536', '65536'],
      ['"9091"', '"9091"'],
    ],
  },
  'redis.url': {
    allowed: REDIS_URL,
    wrong: [
      ['http://a', '"http://a"'],
      ['redis://', '"redis://"'],
      ['localhost:6379', '"localhost:6379"'],
      ['redis://a:99999', '"redis://a:99999"'],
      ['redis://a/abc', '"redis://a/abc"'],
      ['redis://a?b@c', '"redis://***@c"'],
      ['redis://a#b', '"redis://a#b"'],
      ['redis://a:b@c/d@e', '"redis://***@e"'],
      ['6379', '6379'],
    ],
  },
  'redis.mode': oneOf('single, sentinel, cluster'),
  'redis.nodes': {
    allowed: 'a list of hosts with ports, such as [redis-2:6379]',
    wrong: [
      ['redis-2:6379', '"redis-2:6379"'],
      ['null', 'null'],
      ['{}', 'a map'],
    ],
  },
  'redis.sentinelMaster': {
    allowed: 'the name of a master group, such as mymaster, or null',
    wrong: [
      ['""', '""'],
      ['my master', '"my master"'],
      ['5', '5'],
    ],
  },
  'redis.sentinelPassword': {
    allowed: API_KEY,
    wrong: [
      ['""', '"***"'],
      ['a b', '"***"'],
      ['5', '***'],
    ],
  },
  'redis.ca': {
    allowed: 'a file path, or null',
    wrong: [
      ['""', '""'],
      ['5', '5'],
    ],
  },
  'redis.prefix': {
    allowed: '1 to 64 letters, digits and the signs : . _ -',
    wrong: [
      ['""', '""'],
      ['a b', '"a b"'],
      ['"{a}"', '"{a}"'],
      ['null', 'null'],
    ],
  },
  'redis.commandTimeout': duration('10ms', '1m', '9ms', '61s'),
  'store.path': {
    allowed: 'a file path',
    wrong: [
      ['""', '""'],
      ['null', 'null'],
      ['1', '1'],
    ],
  },
  'provider.baseUrl': {
    allowed: BASE_URL,
    wrong: [
      ['ftp://a', '"ftp://a"'],
      ['api.open-meteo.com', '"api.open-meteo.com"'],
      ['https://', '"https://"'],
      ['https:///', '"https:///"'],
      ['https://a/?b=c', '"https://a/?***"'],
      ['"https://a/#b"', '"https://a/#b"'],
      ['https://a b', '"https://a b"'],
      ['null', 'null'],
    ],
  },
  'provider.apiKey': {
    allowed: API_KEY,
    wrong: [
      ['12345', '***'],
      ['a b', '"***"'],
      ['""', '"***"'],
    ],
  },
  'provider.timeout': duration('10ms', '2m', '9ms', '121s'),
  'provider.maxConcurrent': whole(1, 256),
  'provider.maxPointsPerRequest': whole(1, 1000),
  'provider.budget.perMinute': weightLimit,
  'provider.budget.perHour': weightLimit,
  'provider.budget.perDay': weightLimit,
  'provider.budget.reserve': {
    allowed: 'a number from 0 to 0.9',
    wrong: [
      ['1', '1'],
      ['-0.1', '-0.1'],
      ['some', '"some"'],
    ],
  },
  'provider.budget.keyShare': {
    allowed: 'a number from 0 to 1',
    wrong: [
      ['1.01', '1.01'],
      ['-0.1', '-0.1'],
      ['some', '"some"'],
    ],
  },
  'provider.budget.outageShare': {
    allowed: 'a number from 0 to 0.5',
    wrong: [
      ['0.51', '0.51'],
      ['-0.1', '-0.1'],
      ['some', '"some"'],
    ],
  },
  'catalogue.path': {
    allowed: 'a file path, or null',
    wrong: [
      ['""', '""'],
      ['[]', 'a list'],
    ],
  },
  'cache.cellDegrees': {
    allowed: CELL,
    wrong: [
      ['0', '0'],
      ['-1', '-1'],
      ['0.3', '0.3'],
      ['2', '2'],
      ['0.009', '0.009'],
      ['"0.1"', '"0.1"'],
      ['.nan', 'NaN'],
    ],
  },
  'cache.freshness': oneOf('age, run'),
  'cache.freshFor': duration('100ms', '48h', '99ms', '49h'),
  'cache.freshForAtMost': duration('100ms', '48h', '99ms', '49h'),
  'cache.staleFor': duration('0s', '48h', '49h'),
  'cache.prefetchPlaces': { ...whole(0, 100_000), allowed: 'a whole number from 0 to 100000 (0 keeps none)' },
  'cache.memory': {
    allowed: 'a size from 64KiB to 64GiB, such as 512KiB, 64MiB, 1GiB or 10MB',
    wrong: [
      ['1KiB', '"1KiB"'],
      ['65GiB', '"65GiB"'],
      ['64mb', '"64mb"'],
      ['64', '64', 'a size from 64KiB to 64GiB: add the unit, as in 64KiB or 64MiB'],
      ['99999999999999999999GiB', '"99999999999999999999GiB"'],
    ],
  },
  'weather.hourlyHours': whole(1, 168),
  'quota.timeZone': {
    allowed: ZONE,
    wrong: [
      ['Asia/Nowhere', '"Asia/Nowhere"'],
      ['"+06:00"', '"+06:00"'],
      ['6', '6'],
      ['null', 'null'],
    ],
  },
  'quota.tiers': {
    path: 'quota.tiers.gold',
    allowed: 'a whole number of at least 1',
    wrong: [
      ['0', '0'],
      ['1.5', '1.5'],
      ['many', '"many"'],
      ['null', 'null'],
    ],
  },
  'quota.whenStoreIsDown': oneOf('share, refuse'),
  'quota.keepUsageFor': duration('2d', '4000d', '47h', '4001d'),
  'log.file': {
    allowed: 'a file path, or null',
    wrong: [
      ['""', '""'],
      ['[]', 'a list'],
    ],
  },
  'log.level': {
    allowed: 'one of trace, debug, info, warn, error, fatal, silent',
    wrong: [
      ['loud', '"loud"'],
      ['INFO', '"INFO"'],
      ['5', '5'],
      ['null', 'null'],
    ],
  },
  'log.access': {
    allowed: 'true or false',
    wrong: [
      ['"yes"', '"yes"'],
      ['no', '"no"'],
      ['1', '1'],
      ['null', 'null'],
    ],
  },
  'log.accessShare': {
    allowed: 'a number from 0 to 1',
    wrong: [
      ['-0.1', '-0.1'],
      ['1.1', '1.1'],
      ['10%', '"10%"'],
    ],
  },
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
    t.strictSame(
      faultsOfEach(
        t,
        wrong.map(([yaml]) => `# first line\n${lines.join('\n')} ${yaml}\n`),
      ),
      wrong.map(([_, shown, instead = allowed]) => [
        `one.yaml:${keys.length + 1}:${column}: ${path} is ${shown}, but must be ${instead}`,
      ]),
    )
  })

t.test('a wrong item of a list is named by its number', async t => {
  const files = [
    'server:\n  trustedProxies:\n    - 10.0.0.1\n    - 10.0.0.0/33\n    - fd00::/129\n    - 1.2.3.4/8/8\n    - proxy\n    - fe80::1%eth0',
  ]
  t.strictSame(faultsOfTexts(t, { files }), [
    `one.yaml:4:7: server.trustedProxies[1] is "10.0.0.0/33", but must be ${RANGE}`,
    `one.yaml:5:7: server.trustedProxies[2] is "fd00::/129", but must be ${RANGE}`,
    `one.yaml:6:7: server.trustedProxies[3] is "1.2.3.4/8/8", but must be ${RANGE}`,
    `one.yaml:7:7: server.trustedProxies[4] is "proxy", but must be ${RANGE}`,
    `one.yaml:8:7: server.trustedProxies[5] is "fe80::1%eth0", but must be ${RANGE}`,
  ])
})

t.test('origins are written as browsers send them', async t => {
  const wrong = [
    'https://a.example/',
    'HTTPS://a.example',
    'https://a.example:443',
    'https://*.a.example/x',
    'a.example',
    'null',
    'https://*',
    'https://a.*.example',
    'https://*.example',
    'javascript://x',
    'data://x',
    'https://a*.example',
    'ws://a.example',
    'file://a',
    'capacitor://localhost/',
    'https://*.0.0.1',
  ]
  const origins = wrong.map(each => `      - "${each}"`).join('\n')
  const faults = faultsOfTexts(t, { files: [`server:\n  cors:\n    origins:\n${origins}`] })
  t.strictSame(
    faultsOfTexts(t, {
      files: [
        'server: { cors: { origins: ["https://*.a.example", "http://*.a.example:81", "capacitor://localhost", "x-app://a:1"] } }',
      ],
    }),
    [],
  )
  t.strictSame(
    faults.map(fault => /origins\[(\d+)\] is .*, but must be an origin as browsers send it/.exec(fault)?.[1]),
    wrong.map((_, index) => String(index)),
  )
})

t.test('a host name that holds a port or a scheme is named by its number', async t => {
  const files = ['ops:\n  allowedHosts: [ops.example, "::1", "ops.example:9090", "http://ops.example", "*"]']
  t.strictSame(
    faultsOfTexts(t, { files }).map(fault => fault.replace(/^\S+ ops\.allowedHosts/, '')),
    ['"ops.example:9090"', '"http://ops.example"', '"*"'].map(
      (shown, i) => `[${i + 2}] is ${shown}, but must be ${HOST}`,
    ),
  )
})

t.test('a node of Redis that is no host with a port is named by its number', async t => {
  const nodes = ['a:1', '"[fd00::2]:6379"', 'a', '"a:0"', 'a:99999', 'a:1/2', 'me@a:1', 'redis://a:1', '":1"']
  const NODE = 'a host and a port, such as redis-2:6379 or [fd00::2]:6379'
  const files = [`redis: { url: redis://one, mode: cluster, nodes: [${nodes.join(', ')}] }`]
  t.strictSame(
    faultsOfTexts(t, { files }).map(fault => fault.replace(/^\S+ redis\.nodes/, '')),
    ['"a"', '"a:0"', '"a:99999"', '"a:1/2"', '"me@a:1"', '"redis://a:1"', '":1"'].map(
      (shown, i) => `[${i + 2}] is ${shown}, but must be ${NODE}`,
    ),
  )
})

t.test('the bounds of a range are allowed', async t => {
  const config = loadTexts(t, {
    files: [
      'server: { port: 65535, requestTimeout: 100ms, drainFor: 10m }\nops: { port: 0 }\n' +
        'provider: { maxPointsPerRequest: 1000 }\nweather: { hourlyHours: 168 }\n' +
        'cache: { freshFor: 48h, staleFor: 0s, memory: 64KiB }\nquota: { keepUsageFor: 2d, tiers: { one: 1 } }',
    ],
  })
  t.match(config, {
    server: { port: 65535, requestTimeoutMs: 100, drainForMs: 600_000 },
    cache: { freshForMs: 172_800_000, staleForMs: 0, memoryBytes: 65_536 },
  })
})

t.test('a password is not repeated in the sentence about it', async t => {
  const files = [
    'redis: { url: "reddis://me:hunter2@host/0" }',
    'redis: { url: "redis://:hunter2@host:99999" }',
    'provider: { baseUrl: "https://me:hunter2@host/?apikey=hunter2", apiKey: "hunter 2" }',
  ]
  const faults = faultsOfTexts(t, { files })
  t.equal(faults.length, 4)
  for (const fault of faults) t.notMatch(fault, /hunter/)
})
