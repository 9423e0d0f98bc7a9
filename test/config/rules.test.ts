// Without this, settings that contradict each other could start a gateway.

import t from 'tap'
import { rules } from '../../src/config/rules.ts'
import { printPath, settings } from '../../src/config/tree.ts'
import { faultsOfTexts } from './load-text.ts'

const PLAIN =
  'where plain HTTP is not allowed: set server.tls.cert and server.tls.key, or server.trustedProxies, or a ' +
  'loopback host such as 127.0.0.1'
const TOKEN = 'abcdef0123456789abcdef0123456789'
const NO_TOKEN =
  'where a token is required: set ops.token, best by ABOHAWA_OPS__TOKEN, or a loopback host such as 127.0.0.1'
const BOTH = 'set both of them or neither'
const SAME_PORT = 'must differ from server.port on the same host (0 picks a free port)'

const refused: Array<[yaml: string, sentence: string]> = [
  ['server: { host: 0.0.0.0 }', `1:17: server.host is "0.0.0.0", ${PLAIN}`],
  ['server: { host: "::" }', `1:17: server.host is "::", ${PLAIN}`],
  ['server: { host: 10.1.2.3 }', `1:17: server.host is "10.1.2.3", ${PLAIN}`],
  ['server: { host: gateway.example }', `1:17: server.host is "gateway.example", ${PLAIN}`],
  ['server: { tls: { cert: a.pem } }', `1:24: server.tls.cert is set, but server.tls.key is not: ${BOTH}`],
  ['server: { tls: { key: a.pem } }', `1:23: server.tls.key is set, but server.tls.cert is not: ${BOTH}`],
  [
    'server: { cors: { origins: ["*", "https://a.example"] } }',
    "1:28: server.cors.origins can't combine * with other origins",
  ],
  [
    'quota: { rates: { gold: { perSecond: 5 } } }',
    '1:38: quota.rates.gold must be of one of the tiers free, starter, business, enterprise',
  ],
  [
    'quota: { rates: { free: { perMinute: 9, burst: 5 } } }',
    '1:48: quota.rates.free.burst is set, but quota.rates.free.perSecond is not: set both of them or no burst',
  ],
  [
    'quota: { rates: { free: { perSecond: 5, burst: 301 } } }',
    '1:48: quota.rates.free.burst must be at most 60 times quota.rates.free.perSecond (5), got 301',
  ],
  ['server: { port: 9090 }', `1:17: ops.port ${SAME_PORT}, got 9090`],
  ['ops: { port: 8080 }', `1:14: ops.port ${SAME_PORT}, got 8080`],
  ['ops: { port: 8080, host: localhost }', `1:26: ops.port ${SAME_PORT}, got 8080`],
  [`ops: { host: 0.0.0.0, token: ${TOKEN}, port: 8080 }`, `1:70: ops.port ${SAME_PORT}, got 8080`],
  [`ops: { host: "::", token: ${TOKEN}, port: 8080 }`, `1:67: ops.port ${SAME_PORT}, got 8080`],
  ['health: { port: 8080 }', `1:17: health.port ${SAME_PORT}, got 8080`],
  [
    'health: { port: 9090, host: "::" }',
    '1:29: health.port must differ from ops.port on the same host (0 picks a free port), got 9090',
  ],
  ['ops: { host: 0.0.0.0 }', `1:14: ops.host is "0.0.0.0", ${NO_TOKEN}`],
  ['ops: { host: "::" }', `1:14: ops.host is "::", ${NO_TOKEN}`],
  ['ops: { host: 10.1.2.3 }', `1:14: ops.host is "10.1.2.3", ${NO_TOKEN}`],
  ['ops: { host: ops.example }', `1:14: ops.host is "ops.example", ${NO_TOKEN}`],
  ['ops: { host: ops.example, token: null }', `1:34: ops.host is "ops.example", ${NO_TOKEN}`],
  ['health: { host: 0.0.0.0 }', `1:17: health.host is "0.0.0.0", but health.port is not set: ${BOTH}`],
  ['redis: { mode: cluster }', `1:16: redis.mode is cluster, but redis.url is not set: ${BOTH}`],
  [
    'redis: { url: redis://a, mode: sentinel }',
    '1:32: redis.mode is sentinel, but redis.sentinelMaster is not set: set it to the name of the master ' +
      'group, such as mymaster',
  ],
  [
    'redis: { url: redis://a, sentinelMaster: one }',
    '1:42: redis.sentinelMaster is set, but redis.mode is single: it is for sentinel only',
  ],
  [
    'redis: { url: redis://a, mode: cluster, sentinelPassword: hunter2 }',
    '1:59: redis.sentinelPassword is set, but redis.mode is cluster: it is for sentinel only',
  ],
  [
    'redis: { url: redis://a, nodes: [b:1] }',
    '1:33: redis.nodes is set, but redis.mode is single: further nodes are for sentinel and cluster only',
  ],
  [
    'redis: { mode: cluster, url: redis://a/2 }',
    '1:30: redis.url names database 2, but redis.mode is cluster, where there is database 0 only',
  ],
  [
    'redis: { url: redis://a, ca: ca.pem }',
    '1:30: redis.ca is set, but redis.url does not start with rediss:// (TLS)',
  ],
  [
    'cache:\n  freshFor: 24h\n  staleFor: 25h',
    '3:13: cache.freshFor and cache.staleFor are 1d and 25h, but together must be at most 48h',
  ],
  [
    'cache:\n  freshForAtMost: 24h\n  staleFor: 25h',
    '3:13: cache.freshForAtMost and cache.staleFor are 1d and 25h, but together must be at most 48h',
  ],
  [
    'cache: { freshFor: 40h, staleFor: 20h, freshForAtMost: 1h }',
    '1:35: cache.freshFor and cache.staleFor are 40h and 20h, but together must be at most 48h',
  ],
  [
    'cache: { freshForAtMost: 40h, staleFor: 20h, freshFor: 1h }',
    '1:41: cache.freshForAtMost and cache.staleFor are 40h and 20h, but together must be at most 48h',
  ],
]

t.test('what does not agree is refused', async t => {
  for (const [yaml, sentence] of refused)
    t.strictSame(faultsOfTexts(t, { files: [yaml] }), [`one.yaml:${sentence}`], yaml)
})

const allowed = [
  ...['server: { host: 127.8.9.10 }', 'server: { host: "::1" }', 'server: { host: 0:0:0:0:0:0:0:1 }'],
  ...['server: { host: localhost }', 'server: { host: 0.0.0.0, tls: { cert: c.pem, key: k.pem } }'],
  ...['server: { host: 0.0.0.0, trustedProxies: [10.0.0.0/8] }', 'server: { cors: { origins: ["*"] } }'],
  'server: { cors: { origins: [https://a.example, "http://localhost:5173"] } }',
  ...['server: { port: 0 }\nops: { port: 0 }', 'ops: { host: 127.0.0.2, port: 8080 }'],
  ...['ops: { host: "::1", port: 8080 }', `ops: { host: 0.0.0.0, token: ${TOKEN} }`],
  ...[`ops: { host: ops.example, token: "${TOKEN}==" }`, `ops: { token: ${TOKEN} }`],
  'ops: { host: localhost }\nhealth: { host: 0.0.0.0, port: 9091 }',
  ...['health: { port: 0 }\nops: { port: 0 }', 'health: { host: 127.0.0.2, port: 9090 }'],
  'redis: { url: "rediss://me:secret@a/2", ca: ca.pem }',
  'redis: { url: redis://a/2, mode: sentinel, nodes: [b:1], sentinelMaster: one, sentinelPassword: two }',
  'redis: { url: redis://a/0, mode: cluster, nodes: [b:1, "[::1]:7"] }',
  'cache: { freshFor: 24h, staleFor: 24h }',
  'quota: { tiers: { gold: 5 }, rates: { gold: { perSecond: 5, burst: 300 }, free: {} } }',
]

t.test('what agrees is allowed', async t => {
  for (const yaml of allowed) t.strictSame(faultsOfTexts(t, { files: [yaml] }), [], yaml)
})

t.test('a disagreement is traced to the setting that was given last', async t => {
  const files = ['server: { host: 0.0.0.0, trustedProxies: [10.0.0.1] }']
  t.strictSame(faultsOfTexts(t, { files, env: { ABOHAWA_SERVER__TRUSTED_PROXIES: '' } }), [
    `ABOHAWA_SERVER__TRUSTED_PROXIES: server.host is "0.0.0.0", ${PLAIN}`,
  ])
})

t.test('a setting that is wrong by itself is not blamed for disagreeing as well', async t => {
  const files = ['server: { host: 0.0.0.0, trustedProxies: [proxy] }\ncache: { freshFor: 47h }']
  const blamed = faultsOfTexts(t, { files }).map(fault => fault.split(' ')[1])
  t.strictSame(blamed, ['server.trustedProxies[0]', 'cache.freshFor'])
})

t.test('the settings that rules read exist', async t => {
  const known = new Set(settings.map(({ path }) => printPath(path)))
  for (const { reads } of rules) for (const path of reads) t.ok(known.has(path), path)
})
