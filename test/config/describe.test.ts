// The configuration in effect, as an operator sees it.

import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { describeConfig } from '../../src/config/values.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

t.test('the shown configuration can be loaded again and means the same', async t => {
  const given = [
    '',
    'server: { host: 0.0.0.0, port: 0, trustedProxies: [10.0.0.0/8, "::1"], drainFor: 0s, requestTimeout: 1.5s }',
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

t.test('the words are those of a config file', async t => {
  const shown = describeConfig(loadConfig({ files: [], env: {} }))
  t.match(
    shown,
    /^cache:\n {2}cellDegrees: 0\.1\n {2}freshness: run\n {2}freshFor: 1h\n {2}freshForAtMost: 12h\n/m,
  )
  t.match(shown, /^ {2}memory: 64MiB$/m)
  t.match(shown, /^ {2}keepUsageFor: 400d$/m)
  t.notMatch(shown, /(Ms|Bytes):/)
})

t.test('keys and passwords are hidden, and the output is still a configuration', async t => {
  const env = {
    ABOHAWA_PROVIDER__API_KEY: 'hunter2',
    ABOHAWA_REDIS__SENTINEL_PASSWORD: 'hunter2',
    ABOHAWA_REDIS__SENTINEL_MASTER: 'one',
    ABOHAWA_REDIS__MODE: 'sentinel',
    ABOHAWA_REDIS__URL: 'rediss://me:hunter2@redis.example:6380/1?password=hunter2',
  }
  const shown = describeConfig(loadConfig({ files: [], env }))
  t.notMatch(shown, /hunter2/)
  t.match(shown, /apiKey: "\*\*\*"/)
  t.match(shown, /sentinelPassword: "\*\*\*"/)
  t.match(shown, /url: rediss:\/\/me:\*\*\*@redis\.example:6380\/1\?password=\*\*\*/)
  t.equal(loadTexts(t, { files: [shown] }).provider.apiKey, '***')
})

t.test('a token that is shown as *** is none that the same configuration would take', async t => {
  const token = '0123456789abcdef0123456789abcdef'
  const shown = describeConfig(loadTexts(t, { files: [`ops: { token: "${token}" }`] }))
  t.notMatch(shown, /0123456789/)
  t.match(shown, /^ {2}token: "\*\*\*"$/m)
  t.match(faultsOfTexts(t, { files: [shown] }), [/ops\.token is "\*\*\*", but must be 32 to 256 characters/])
})
