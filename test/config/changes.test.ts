// Without this, a reload could report a change wrongly, or apply one that needs a restart.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { rules } from '../../src/config/rules.ts'
import { settings } from '../../src/config/tree.ts'
import {
  changesBetween,
  describeConfig,
  effectOf,
  exceptionOf,
  fleetHashOf,
  valuesOf,
  withValuesOf,
} from '../../src/config/values.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

const usual = loadConfig({ files: [], env: {} })

t.test('changes are told with both values and when they take effect, secrets hidden', async t => {
  const changed = loadTexts(t, {
    files: ['server: { port: 1 }\ncache: { freshFor: 90m }\nquota: { tiers: { gold: 7 } }'],
    env: { ABOHAWA_PROVIDER__API_KEY: 'hunter2', ABOHAWA_REDIS__URL: 'redis://me:hunter2@redis' },
  })
  t.strictSame(changesBetween(usual, changed), [
    { path: 'server.port', before: '8080', after: '1', effect: 'restart' },
    { path: 'redis.url', before: 'null', after: 'redis://me:***@redis', effect: 'restart' },
    { path: 'provider.apiKey', before: 'null', after: '"***"', effect: 'restart' },
    { path: 'cache.freshFor', before: '1h', after: '90m', effect: 'live' },
    { path: 'quota.tiers.gold', before: undefined, after: '7', effect: 'live' },
  ])
  t.strictSame(changesBetween(changed, changed), [])
  t.strictSame(changesBetween(changed, usual).at(-1), {
    path: 'quota.tiers.gold',
    before: '7',
    after: undefined,
    effect: 'restart',
  })
})

t.test('a secret that changed is a change, although both are shown alike', async t => {
  const [one, other] = ['a', 'b'].map(key => loadTexts(t, { env: { ABOHAWA_PROVIDER__API_KEY: key } }))
  t.hasStrict(one && other && changesBetween(one, other), [{ path: 'provider.apiKey', effect: 'restart' }])
})

t.test('a certificate is live, but not between HTTP and HTTPS', async t => {
  const tls = (name: string) => loadTexts(t, { files: [`server: { tls: { cert: ${name}, key: k } }`] })
  t.hasStrict(changesBetween(tls('a'), tls('b')), [{ path: 'server.tls.cert', effect: 'live' }])
  t.hasStrict(changesBetween(usual, tls('b')), [{ effect: 'restart' }, { effect: 'restart' }])
  const cert = settings.find(({ path }) => path.join('.') === 'server.tls.cert')
  t.match(cert && [effectOf(cert), exceptionOf(cert)], ['live', /^from null or to null/])
})

t.test('the values of some settings are taken over, and no others', async t => {
  const changed = loadTexts(t, {
    files: [
      'server: { port: 1 }\ncache: { freshFor: 90m, memory: 1MiB }\nquota: { tiers: { gold: 7, free: 1 } }',
    ],
  })
  const mixed = withValuesOf(usual, changed, ['cache.freshFor', 'quota.tiers.gold'])
  t.match(mixed, { server: { port: 8080 }, cache: { freshForMs: 5_400_000, memoryBytes: 64 * 2 ** 20 } })
  t.strictSame(mixed.quota.tiers, { ...usual.quota.tiers, gold: 7 })
  t.ok(Object.isFrozen(mixed.quota.tiers))
  t.strictSame(withValuesOf(mixed, usual, ['quota.tiers.gold']).quota.tiers, usual.quota.tiers, 'taken back')
  const every = valuesOf(changed).map(({ path }) => path)
  t.strictSame(withValuesOf(usual, changed, every), changed)
})

t.test('no rule binds a live setting to one that needs a restart', async t => {
  const effects = new Map(settings.map(setting => [setting.path.join('.'), effectOf(setting)]))
  // Certificates are live where one follows another, which these rules do not tell apart; of fallbacks only budgets are, which no
  // rule reads.
  const isLiveInPart = (path: string) => /^server\.tls|^provider\.fallbacks/.test(path)
  const live = (path: string) => effects.get(path) === 'live' && !isLiveInPart(path)
  for (const { reads } of rules)
    t.ok(reads.every(live) || !reads.some(live), `${reads.join(', ')} take effect together`)
})

t.test('the hash of a fleet follows what instances should have in common, and nothing else', async t => {
  const hashOf = (text: string) => fleetHashOf(loadTexts(t, { files: [text] }))
  const same = fleetHashOf(usual)
  t.match(same, /^[0-9a-f]{12}$/)
  const ofInstance = 'server: { port: 1, host: localhost }\nops: { port: 2 }\nlog: { level: debug }\n'
  t.equal(hashOf(`${ofInstance}store: { path: other.db }\ncatalogue: { path: places.json }`), same)
  for (const shared of [
    ...['cache: { freshFor: 2h }', 'quota: { tiers: { gold: 7 } }'],
    ...['provider: { budget: { perDay: 5 } }', 'weather: { hourlyHours: 24 }'],
  ])
    t.not(hashOf(shared), same, shared)
  t.equal(
    hashOf('quota: { tiers: { a: 1, b: 2 } }'),
    hashOf('quota: { tiers: { b: 2, a: 1 } }'),
    'in any order',
  )
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const keyIn = (name: string): string => {
    const file = join(folder, name)
    writeFileSync(file, 'key')
    return hashOf(`provider: { fallbacks: [{ baseUrl: "http://b", apiKeyFile: "${file}" }] }`)
  }
  t.equal(keyIn('one'), keyIn('other'), 'wherever the same key stands')
})

t.test('the shown configuration can be loaded again and means the same', async t => {
  const given = [
    '',
    'server: { host: 0.0.0.0, port: 0, trustedProxies: [10.0.0.0/8, "::1"], drainFor: 0s, keepAliveTimeout: 1.5s }',
    'cache: { cellDegrees: 0.3333333333333333, freshFor: 90m, memory: 10MB, staleFor: 1h }',
    'quota: { tiers: { pro-plus: 7, "no": 8 }, keepUsageFor: 48h }\nlog: { access: false, level: silent }',
    'redis: { url: "rediss://host:6380/2?family=6", prefix: "a:" }\nstore: { path: "007" }',
    'catalogue: { path: "বাংলাদেশ: # yes" }\nprovider: { budget: { reserve: 0.05, perDay: null } }',
  ]
  for (const text of given)
    await t.test(text || 'the defaults', async t => {
      const config = loadTexts(t, { files: [text] })
      const shown = describeConfig(config)
      await t.test('again', async t => t.strictSame(loadTexts(t, { files: [shown] }), config))
    })
})

t.test('secrets are hidden, and the output is a configuration that lacks only the token', async t => {
  const env = {
    ABOHAWA_OPS__TOKEN: '0123456789abcdef0123456789abcdef',
    ABOHAWA_PROVIDER__API_KEY: 'hunter2',
    ABOHAWA_REDIS__SENTINEL_PASSWORD: 'hunter2',
    ABOHAWA_REDIS__SENTINEL_MASTER: 'one',
    ABOHAWA_REDIS__MODE: 'sentinel',
    ABOHAWA_REDIS__URL: 'rediss://me:hunter2@redis.example:6380/1?password=hunter2',
  }
  const shown = describeConfig(loadConfig({ files: [], env }))
  t.notMatch(shown, /hunter2|0123456789/)
  t.match(shown, /^ {2}token: "\*\*\*"$/m)
  t.match(shown, /apiKey: "\*\*\*"/)
  t.match(shown, /sentinelPassword: "\*\*\*"/)
  t.match(shown, /url: rediss:\/\/me:\*\*\*@redis\.example:6380\/1\?password=\*\*\*/)
  t.equal(loadTexts(t, { files: [shown.replace(/^ {2}token: .*$/m, '')] }).provider.apiKey, '***')
  t.match(faultsOfTexts(t, { files: [shown] }), [/ops\.token must be 32 to 256 characters .*, got "\*\*\*"/])
})
