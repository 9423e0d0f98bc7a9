// Without this, a variable could set another setting, or a mistyped one could be ignored.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import * as z from 'zod'
import { variableOf } from '../../src/config/environment.ts'
import { filesOf, loadConfig, readConfig } from '../../src/config/load.ts'
import { coreOf, defaultOf, printPath, settings } from '../../src/config/tree.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

const load = (env: NodeJS.ProcessEnv) => loadConfig({ files: [], env })

const textOf = (value: unknown): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)

// A setting with a name in its path is tested with one such name.
const reachable = settings.map(({ path, schema, named }) =>
  named
    ? { path: [...path, 'free'], schema: named.valueType, usual: path.at(-1) === 'tiers' ? 100 : undefined }
    : { path, schema, usual: defaultOf(schema) },
)

for (const { path, schema, usual } of reachable) {
  const variable = variableOf(path)
  t.test(`${variable} sets ${printPath(path)}`, async t => {
    if (usual !== undefined)
      t.strictSame(load({ [variable]: textOf(usual) }), load({}), 'its default as text is its default')
    // A blank is valid only for a list and for an optional number; an unclosed bracket is no valid list, and a word no
    // valid number.
    const core = coreOf(schema)
    const wrong = core instanceof z.ZodArray ? '[' : core instanceof z.ZodNumber ? 'much' : ' '
    const [fault = '', ...others] = faultsOfTexts(t, { env: { [variable]: wrong } })
    t.ok(fault.startsWith(`${variable}: ${printPath(path)} must be `), fault)
    t.match(fault, /, got /)
    t.strictSame(others, [])
  })
}

t.test('limits of a tier are read from one variable, as a map', async t => {
  const { quota } = load({ ABOHAWA_QUOTA__RATES__FREE: '{ perSecond: 5, burst: 20 }' })
  t.strictSame(quota.rates, { free: { perSecond: 5, burst: 20, perMinute: null } })
})

t.test('each variable is named after its path in upper snake case', async t => {
  const names = settings.map(({ path }) => variableOf(path))
  t.equal(new Set(names).size, names.length)
  for (const name of names) t.match(name, /^ABOHAWA_[A-Z]+(__[A-Z][A-Z0-9]*(_[A-Z]+)*)+$/)
  t.equal(variableOf(['provider', 'baseUrl']), 'ABOHAWA_PROVIDER__BASE_URL')
  t.equal(variableOf(['provider', 'maxPointsPerRequest']), 'ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST')
  t.equal(variableOf(['server', 'tls', 'cert']), 'ABOHAWA_SERVER__TLS__CERT')
})

t.test('text, numbers, flags, durations and sizes are read from text', async t => {
  const config = load({
    ...{ ABOHAWA_SERVER__PORT: '0', ABOHAWA_LOG__ACCESS: 'false', ABOHAWA_LOG__LEVEL: 'silent' },
    ...{ ABOHAWA_CACHE__CELL_DEGREES: '0.25', ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.5' },
    ...{ ABOHAWA_CACHE__MEMORY: '1.5MiB', ABOHAWA_CACHE__FRESH_FOR: '90m' },
    ...{ ABOHAWA_QUOTA__TIERS__FREE: '3', ABOHAWA_QUOTA__TIERS__EXTRA_LARGE: '4' },
  })
  t.hasStrict(config, {
    server: { port: 0 },
    log: { access: false, level: 'silent' },
    cache: { cellDegrees: 0.25, memoryBytes: 1_572_864, freshForMs: 5_400_000 },
    provider: { budget: { reserve: 0.5 } },
    quota: { tiers: { free: 3, 'extra-large': 4, starter: 1000 } },
  })
})

t.test('text that looks like something else stays text', async t => {
  for (const apiKey of ['12345', '0123', 'true', 'null', '1e3', '[a]', '~'])
    t.equal(load({ ABOHAWA_PROVIDER__API_KEY: apiKey }).provider.apiKey, apiKey)
  t.equal(load({ ABOHAWA_STORE__PATH: '007' }).store.path, '007')
})

t.test('an empty variable is null where null is allowed, and refused elsewhere', async t => {
  const files = ['redis: { url: redis://one }\nprovider: { apiKey: abc }']
  const env = { ABOHAWA_REDIS__URL: '', ABOHAWA_PROVIDER__API_KEY: '' }
  t.match(loadTexts(t, { files, env }), { redis: { url: null }, provider: { apiKey: null } })
  t.strictSame(faultsOfTexts(t, { env: { ABOHAWA_STORE__PATH: '', ABOHAWA_LOG__ACCESS: '' } }), [
    'ABOHAWA_LOG__ACCESS: log.access must be true, false or a number from 0 to 1, got ""',
    'ABOHAWA_STORE__PATH: store.path must be a file path, got ""',
  ])
})

t.test('a list is given with commas or as YAML', async t => {
  for (const [text, proxies] of [
    ['10.0.0.1, fd00::/8,', ['10.0.0.1', 'fd00::/8']],
    ['[10.0.0.0/8, "::1"]', ['10.0.0.0/8', '::1']],
    ['[::1]', ['::1']],
    ['', []],
    ['[]', []],
  ] as const)
    t.strictSame(load({ ABOHAWA_SERVER__TRUSTED_PROXIES: text }).server.trustedProxies, proxies, text)
  // An address of version 6 in brackets is none of YAML.
  const cluster = { ABOHAWA_REDIS__URL: 'redis://[::1]:7000', ABOHAWA_REDIS__MODE: 'cluster' }
  for (const [text, nodes] of [
    ['[::1]:7001', ['[::1]:7001']],
    [' [::1]:7001, [fd00::2]:7002', ['[::1]:7001', '[fd00::2]:7002']],
    ['["[::1]:7001", redis-2:7002]', ['[::1]:7001', 'redis-2:7002']],
  ] as const)
    t.strictSame(load({ ...cluster, ABOHAWA_REDIS__NODES: text }).redis.nodes, nodes, text)
  t.match(faultsOfTexts(t, { env: { ...cluster, ABOHAWA_REDIS__NODES: '[::1]:' } }), [
    /redis\.nodes\[0\] must be a host and a port, .*, got "\[::1\]:"/,
  ])
  // A list of a map whose key is a list, about which Node would warn.
  const warned = t.capture(process, 'emitWarning', () => {})
  for (const given of [
    { env: { ...cluster, ABOHAWA_REDIS__NODES: '[[::1]:7001]' } },
    { env: cluster, files: ['redis: { nodes: [[::1]:7001] }'] },
  ])
    t.match(faultsOfTexts(t, given), [/redis\.nodes\[0\] must be a host and a port, .*, got a map/])
  t.strictSame(warned(), [])
})

t.test('a variable that is not known is refused with the nearest one that is', async t => {
  const env = {
    ABOHAWA_PROVIDER__BASEURL: 'x',
    ABOHAWA_SERVER_PORT: '1',
    ABOHAWA_CONFIG: '/x',
    ABOHAWA_BOGUS: '/x',
    ABOHAWA_QUOTA__TIERS: '{}',
    ABOHAWA_QUOTA__TIERS__9: '1',
  }
  t.strictSame(faultsOfTexts(t, { env }), [
    'ABOHAWA_BOGUS: this variable is not known',
    'ABOHAWA_CONFIG: this variable is not known; did you mean ABOHAWA_CONFIG_FILE?',
    'ABOHAWA_PROVIDER__BASEURL: this variable is not known; did you mean ABOHAWA_PROVIDER__BASE_URL?',
    'ABOHAWA_QUOTA__TIERS: this variable is not known; did you mean ABOHAWA_QUOTA__TIERS__<NAME>?',
    'ABOHAWA_QUOTA__TIERS__9: quota.tiers.9 must end in a tier name: up to 60 lower-case letters, digits and hyphens, ' +
      'with a letter first',
    'ABOHAWA_SERVER_PORT: this variable is not known; did you mean ABOHAWA_SERVER__PORT?',
  ])
})

t.test('a variable with a name that steers a terminal is repeated without that', async t => {
  const name = `ABOHAWA_\u001b[2J\u202e\n${'X'.repeat(100_000)}`
  const { message } = t.throws(() => loadConfig({ files: [], env: { [name]: '1' } })) as Error
  t.match(message, /^ABOHAWA_\\u001b\[2J\\u202e\\u000aX+…: this variable is not known$/)
  t.ok(message.length < 300)
})

t.test('what other programs, tests and Kubernetes name for themselves is left alone', async t => {
  const env = {
    ...{ PATH: '/bin', PORT: '1', ABOHAWA_TEST_REDIS: 'x', abohawa_server__port: '2' },
    // As docs/api.md has them for whoever tries the API.
    ...{ ABOHAWA_KEY: 'svc_live_…', ABOHAWA_URL: 'http://127.0.0.1:8080' },
    // Injected for a service of our name.
    ...{ ABOHAWA_SERVICE_HOST: '10.96.12.7', ABOHAWA_SERVICE_PORT: '80', ABOHAWA_SERVICE_PORT_HTTP: '80' },
    ...{ ABOHAWA_PORT: 'tcp://10.96.12.7:80', ABOHAWA_PORT_80_TCP: 'tcp://10.96.12.7:80' },
    ...{
      ABOHAWA_PORT_80_TCP_PROTO: 'tcp',
      ABOHAWA_PORT_80_TCP_PORT: '80',
      ABOHAWA_PORT_80_TCP_ADDR: 'fd00::7',
    },
    ...{ ABOHAWA_OPS_SERVICE_HOST: '10.96.12.8', ABOHAWA_OPS_PORT: 'tcp://10.96.12.8:9090' },
  }
  t.strictSame(load(env), load({}))
  // A port that somebody meant for us is none of them.
  t.match(faultsOfTexts(t, { env: { ABOHAWA_PORT: '8080', ABOHAWA_OPS_PORT: '9090' } }), [
    /^ABOHAWA_OPS_PORT: this variable is not known; did you mean ABOHAWA_OPS__PORT\?$/,
    /^ABOHAWA_PORT: this variable is not known$/,
  ])
})

t.test('secrets are read from the files that __FILE variables name, without a last line break', async t => {
  const folder = t.testdir({ key: 'hunter2\n', url: 'redis://me:hunter2@redis:6379/1\r\n', digits: '0123' })
  const env = {
    ABOHAWA_PROVIDER__API_KEY__FILE: `${folder}/key`,
    ABOHAWA_REDIS__URL__FILE: `${folder}/url`,
  }
  const { config, origins } = readConfig({ files: [], env })
  t.equal(config.provider.apiKey, 'hunter2')
  t.equal(config.redis.url, 'redis://me:hunter2@redis:6379/1')
  t.strictSame(origins.get('provider.apiKey'), { variable: 'ABOHAWA_PROVIDER__API_KEY__FILE' })
  t.strictSame(filesOf({ files: ['a.yaml'], env }), ['a.yaml', `${folder}/key`, `${folder}/url`])
  t.equal(load({ ABOHAWA_PROVIDER__API_KEY__FILE: `${folder}/digits` }).provider.apiKey, '0123')
})

t.test('a secret file that can’t be used is refused in one sentence without the secret', async t => {
  // Not the test's own folder, which holds the texts.
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-secrets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const secretFiles = { empty: '', blank: 'two words', url: 'redis://me:hunter2@' }
  for (const [name, text] of Object.entries(secretFiles)) writeFileSync(join(folder, name), text)
  const faultOf = (env: NodeJS.ProcessEnv) => faultsOfTexts(t, { env }).join('\n')
  t.equal(
    faultOf({ ABOHAWA_PROVIDER__API_KEY__FILE: '/nowhere/key' }),
    `ABOHAWA_PROVIDER__API_KEY__FILE: provider.apiKey is to be read from "/nowhere/key", which can't be read: there is no such file`,
  )
  t.match(faultOf({ ABOHAWA_PROVIDER__API_KEY__FILE: folder }), /it is a directory$/)
  const name = 'ABOHAWA_PROVIDER__API_KEY__FILE: provider.apiKey must be text'
  for (const file of ['empty', 'blank']) {
    const fault = faultOf({ ABOHAWA_PROVIDER__API_KEY__FILE: `${folder}/${file}` })
    t.match(fault, name)
  }
  t.notMatch(faultOf({ ABOHAWA_REDIS__URL__FILE: `${folder}/url` }), 'hunter2')
  t.equal(
    faultOf({ ABOHAWA_PROVIDER__API_KEY__FILE: `${folder}/blank`, ABOHAWA_PROVIDER__API_KEY: 'a' }),
    'ABOHAWA_PROVIDER__API_KEY__FILE: provider.apiKey is given by ABOHAWA_PROVIDER__API_KEY too; keep one of the two',
  )
  t.match(faultOf({ ABOHAWA_CACHE__FRESH_FOR__FILE: 'a' }), /this variable is not known/, 'no secret')
})
