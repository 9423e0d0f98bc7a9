// Without this, files and variables could be merged in a wrong order, or a fault could lose its place.

import { writeFileSync } from 'node:fs'
import t from 'tap'
import { ConfigError, loadConfig, readConfig } from '../../src/config/load.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

t.test('without files or variables the configuration is that of the schema, with the constants', async t => {
  t.hasStrict(loadConfig({ files: [], env: {} }), {
    server: { host: '127.0.0.1', port: 8080, tls: { cert: null, http2: true }, drainForMs: 2_000 },
    ops: { port: 9090, maxConnections: 128, requestTimeoutMs: 10_000 },
    health: { port: null, maxConnections: 32 },
    redis: { url: null, mode: 'single', prefix: 'abohawa:', commandTimeoutMs: 500 },
    provider: {
      ...{ baseUrl: 'https://api.open-meteo.com', retries: 2, totalTimeoutMs: 30_000 },
      breaker: { after: 3, halfOpenAfterMs: 5_000, halfOpenAfterAtMostMs: 60_000 },
      budget: { perMinute: 600, perHour: 5_000, perDay: 10_000, reserve: 0.1 },
      runs: { model: 'ecmwf_ifs', pollEveryMs: 300_000 },
    },
    cache: { freshForMs: 3_600_000, freshSpread: 0.2, leaseForMs: 2_000, memoryBytes: 67_108_864 },
    quota: { tiers: { free: 100, enterprise: 100_000 }, keepUsageForMs: 34_560_000_000 },
    config: { pollEveryMs: 1_000 },
  })
})

const mergeKeys = `x-fresh: &fresh { freshFor: 2h, staleFor: 3h }
x-places: &places { prefetchPlaces: 7, freshFor: 9h }
x-budget: &budget { perDay: 7, perHour: 6 }
cache:
  <<: [*fresh, *places]
  staleFor: 4h
  x-note: from the runbook of May
provider:
  budget: { <<: *budget, perHour: 5 }
# A tier may be called so.
quota: { tiers: { x-large: 5 } }
`
const read: Record<string, [files: string[], env: Record<string, string>, wanted: object]> = {
  'later files win over earlier ones, and variables over files': [
    ['server: { port: 1001, keepAliveTimeout: 1s }\ncache: { freshFor: 2h }', 'server: { port: 1002 }'],
    { ABOHAWA_CACHE__FRESH_FOR: '3h' },
    { server: { port: 1002, keepAliveTimeoutMs: 1000 }, cache: { freshForMs: 10_800_000 } },
  ],
  'maps are merged, with those of the defaults too': [
    ['quota: { tiers: { gold: 7 } }', 'quota: { tiers: { free: 5 } }'],
    {},
    { quota: { tiers: { free: 5, starter: 1000, business: 10_000, enterprise: 100_000, gold: 7 } } },
  ],
  'lists are replaced': [
    ['server: { trustedProxies: [10.0.0.1, 10.0.0.2] }', 'server: { trustedProxies: [fd00::/8] }'],
    {},
    { server: { trustedProxies: { length: 1, 0: 'fd00::/8' } } },
  ],
  'null removes the value of an earlier file': [
    ['redis: { url: redis://one }', 'redis: { url: null }'],
    {},
    { redis: { url: null } },
  ],
  'anchors and Windows line ends are read as YAML has them': [
    ['server:\r\n  keepAliveTimeout: &long 20s\r\n  drainFor: *long\r\n'],
    {},
    { server: { keepAliveTimeoutMs: 20_000, drainForMs: 20_000 } },
  ],
  'merge keys give what does not stand beside them, and keys with x- are left alone': [
    [mergeKeys],
    {},
    {
      cache: { freshForMs: 7_200_000, staleForMs: 14_400_000, prefetchPlaces: 7 },
      provider: { budget: { perDay: 7, perHour: 5 } },
      quota: { tiers: { 'x-large': 5 } },
    },
  ],
  'the slash at the end of the provider URL is trimmed, and a path is kept': [
    [],
    { ABOHAWA_PROVIDER__BASE_URL: 'https://weather.example/open-meteo//' },
    { provider: { baseUrl: 'https://weather.example/open-meteo' } },
  ],
}
for (const [what, [files, env, wanted]] of Object.entries(read))
  t.test(what, async t => t.match(loadTexts(t, { files, env }), wanted))

t.test('a file may be empty, hold comments alone, or name a section without a setting', async t => {
  const files = ['', '# nothing\n---\n', 'server:\n  # port: 1\nquota:\n  tiers:\n']
  t.strictSame(loadTexts(t, { files }), loadConfig({ files: [], env: {} }))
})

t.test('a wrong merge key is told where it stands, and a wrong value where it was given', async t => {
  const merge = 'one.yaml:1:1: this is not a YAML config file: Merge sources must be maps or map aliases'
  const table: Array<[text: string, sentence: string]> = [
    ['server: { <<: 5 }', merge],
    ['server: { <<: [{ port: 1 }, 7] }', merge],
    ['x-a: &a { port: -1 }\nserver: { <<: *a }', 'one.yaml:1:17: server.port must be '],
    ['x-a: &a { prot: 1 }\nserver: { <<: *a }', 'one.yaml:1:11: server.prot is not a known setting;'],
  ]
  for (const [text, sentence] of table) {
    const [fault = ''] = faultsOfTexts(t, { files: [text] })
    t.equal(fault.slice(0, sentence.length), sentence, text)
  }
})

t.test('faults are handed on with file, line, column, variable and path', async t => {
  const folder = t.testdir({ 'one.yaml': 'server:\n  port: x\n  prot: 1\ncache: [' })
  const faultsOf = (env: NodeJS.ProcessEnv, files: string[] = []) => {
    try {
      loadConfig({ files, env })
    } catch (thrown) {
      return thrown instanceof ConfigError ? thrown.faults : undefined
    }
    return []
  }
  const file = `${folder}/one.yaml`
  t.match(faultsOf({}, [file]), [{ file, line: 4, column: 9, sentence: /not a YAML config file/ }])
  writeFileSync(file, 'server:\n  port: x\n  prot: 1\nredis:\n  nodes: [a:1, 5]\n')
  const faults = faultsOf({ ABOHAWA_OPS__PORT: 'high', ABOHAWA_CACHE__STALE_FOR: '48h' }, [file]) ?? []
  t.match(faults[0], {
    file,
    line: 2,
    column: 9,
    path: 'server.port',
    sentence: /:2:9: server\.port must be .*, got "x"/,
  })
  t.hasStrict(faults[1], { file, line: 3, column: 3, path: 'server.prot' })
  t.hasStrict(faults[2], { file, line: 5, column: 16, path: 'redis.nodes[1]' })
  t.hasStrict(faults.at(-2), { variable: 'ABOHAWA_OPS__PORT', path: 'ops.port' })
  t.hasStrict(faults.at(-1), { variable: 'ABOHAWA_CACHE__STALE_FOR', path: 'cache.staleFor' })
})

t.test('every value has the place where it was given', async t => {
  const folder = t.testdir({
    'one.yaml': 'x-a: &a { freshFor: 2h }\ncache:\n  <<: *a\nquota: { tiers: { gold: 7 } }\n',
  })
  const file = `${folder}/one.yaml`
  const { origins } = readConfig({ files: [file], env: { ABOHAWA_LOG__LEVEL: 'warn' } })
  t.hasStrict(origins.get('cache.freshFor'), { file, line: 1, column: 21 })
  t.hasStrict(origins.get('quota.tiers.gold'), { file, line: 4 })
  t.equal(origins.get('quota.tiers.free'), undefined)
  t.strictSame(origins.get('log.level'), { variable: 'ABOHAWA_LOG__LEVEL' })
})

t.test('a cell may have any side of 1/n degrees for a whole n up to 100', async t => {
  for (let n = 1; n <= 100; n++) {
    const config = loadConfig({ files: [], env: { ABOHAWA_CACHE__CELL_DEGREES: String(1 / n) } })
    t.equal(config.cache.cellDegrees, 1 / n)
  }
})

t.test('nothing in the configuration can be changed', async t => {
  const loose = (value: unknown, path: string): string[] =>
    typeof value !== 'object' || value === null
      ? []
      : [
          ...(Object.isFrozen(value) ? [] : [path]),
          ...Object.entries(value).flatMap(([key, part]) => loose(part, `${path}.${key}`)),
        ]
  t.strictSame(loose(loadTexts(t, { files: ['server: { trustedProxies: [10.0.0.1] }'] }), 'config'), [])
})

t.test('a file that is not one map of settings is refused in one sentence', async t => {
  const map = 'must be a map of'
  const noYaml = 'this is not a YAML config file:'
  const table: [text: string, place: string, sentence: string][] = [
    [
      ...(['- 1\n- 2', '1:1'] as const),
      `the whole file ${map} server, ops, health, redis, store, provider, catalogue, cache, weather, quota, log, got a list`,
    ],
    ['# words\nwords', '2:1', `the whole file ${map} server, ops,`],
    ['server:\n\tport: 1', '2:1', `${noYaml} `],
    ['server: [1\nops: 2', '2:1', `${noYaml} `],
    ['log: { level: "info', '1:20', `${noYaml} `],
    ['log: !level info', '1:6', `${noYaml} `],
    ['log: {}\n---\nlog: {}', '2:1', `${noYaml} it holds more than one document`],
    ['store: { path: *where }', '1:16', `${noYaml} it refers to an anchor that is not there`],
    ['server: { trustedProxies: [*a] }', '1:28', `${noYaml} it refers to an anchor`],
    ['&a [*a]', '1:4', `the whole file ${map} `],
    ['ops:\n  port: 1\n  port: 2', '3:3', `${noYaml} Map keys must be unique`],
    ['log: {}\nlog: {}', '2:1', `${noYaml} Map keys must be unique`],
    ['server: 5', '1:9', `server ${map} host, port, reusePort, tls,`],
    ['quota: { tiers: [1] }', '1:17', `quota.tiers ${map} tier names to `],
  ]
  for (const [text, place, sentence] of table) {
    const [fault = '', ...others] = faultsOfTexts(t, { files: [text] })
    const wanted = `one.yaml:${place}: ${sentence}`
    t.strictSame([fault.slice(0, wanted.length), others], [wanted, []], text)
  }
})

t.test("a file that can't be read is refused in one sentence", async t => {
  const folder = t.testdir()
  const load = (file: string) => () => loadConfig({ files: [file], env: {} })
  const missing = `${folder}/none.yaml`
  t.throws(load(missing), { message: `${missing}: the config file can't be read: there is no such file` })
  t.throws(load(folder), { message: `${folder}: the config file can't be read: it is a directory` })
  t.throws(load('a\0b'), { code: 'bad_input' })
})

t.test('several faults are listed one per line, in the order of files and lines, variables last', async t => {
  const files = [
    'server:\n  port: -1\n  hosts: 1\n  drainFor: 5',
    'cache: { staleFor: 48h }\nlog: { access: 2 }',
  ]
  const faults = faultsOfTexts(t, { files, env: { ABOHAWA_OPS__PORT: 'high', ABOHAWA_OPS__PROT: '1' } })
  t.strictSame(
    faults.map(fault => fault.split(' ').slice(0, 2).join(' ')),
    [
      'one.yaml:2:9: server.port',
      'one.yaml:3:3: server.hosts',
      'one.yaml:4:13: server.drainFor',
      'two.yaml:2:16: log.access',
      'ABOHAWA_OPS__PORT: ops.port',
      'ABOHAWA_OPS__PROT: this',
      'two.yaml:1:20: cache.freshForAtMost',
    ],
  )
})

t.test('a wrong value is refused even where a later file would have replaced it', async t => {
  t.strictSame(faultsOfTexts(t, { files: ['server: { port: x }', 'server: { port: 1 }'] }), [
    'one.yaml:1:17: server.port must be a whole number from 0 to 65535 (0 picks a free port), got "x"',
  ])
})

t.test('a name that is not known is refused with the nearest one that is, at every depth', async t => {
  const table: [text: string, place: string, name: string, nearest?: string][] = [
    ['cahce: {}', '1:1', 'cahce', 'cache'],
    ['cache:\n  freshfor: 1h', '2:3', 'cache.freshfor', 'cache.freshFor'],
    ['cache: { fresh_for: 1h }', '1:10', 'cache.fresh_for', 'cache.freshFor'],
    ['cache: { freshForMs: 1 }', '1:10', 'cache.freshForMs', 'cache.freshFor'],
    ['server: { tls: { crt: a } }', '1:18', 'server.tls.crt', 'server.tls.cert'],
    ['provider: { budget: { perday: 1 } }', '1:23', 'provider.budget.perday', 'provider.budget.perDay'],
    ['baseUrl: http://a', '1:1', 'baseUrl', 'provider.baseUrl'],
    ['server: { toString: 1 }', '1:11', 'server.toString'],
    ['server: { __proto__: { port: 1 } }', '1:11', 'server.__proto__'],
    ['"one\\ntwo": 1', '1:1', '"one\\ntwo"'],
    ['bogus: 1', '1:1', 'bogus'],
  ]
  for (const [text, place, name, nearest] of table)
    t.strictSame(
      faultsOfTexts(t, { files: [text] }),
      [`one.yaml:${place}: ${name} is not a known setting${nearest ? `; did you mean ${nearest}?` : ''}`],
      text,
    )
  const tier = 'must end in a tier name: up to 60 lower-case letters, digits and hyphens, with a letter first'
  t.strictSame(faultsOfTexts(t, { files: ['quota: { tiers: { Gold: 5 } }'] }), [
    `one.yaml:1:19: quota.tiers.Gold ${tier}`,
  ])
  // A path of settings shows no more of a name.
  const longest = 'a'.repeat(60)
  t.strictSame(faultsOfTexts(t, { files: [`quota: { tiers: { ${longest}a: 5 } }`] }), [
    `one.yaml:1:19: quota.tiers."${longest}…" ${tier}`,
  ])
  t.equal(loadTexts(t, { files: [`quota: { tiers: { ${longest}: 5 } }`] }).quota.tiers[longest], 5)
})
