// Without it a reload could fail requests, take a broken file, show a secret, or not say what needs a restart.

import { X509Certificate } from 'node:crypto'
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { metric as metricAt } from '../scenarios/set-up.ts'
import { makeChain, withoutOpenssl } from '../support/certificate-chain.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'

const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)
const provider = await startProvider(t, ['--runs', 'none'], null)

type Settings = Record<string, unknown>

/** A folder with a config file, which the test writes. */
const configFile = async (t: Test, first: Settings = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-reload-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const file = join(folder, 'gateway.yaml')
  const base: Settings = {
    'server.port': 0,
    'server.drainFor': '0s',
    'ops.port': 0,
    'store.path': join(folder, 'store.db'),
    'provider.baseUrl': provider.url,
    'provider.budget.perMinute': null,
    'provider.budget.perHour': null,
    'provider.budget.perDay': null,
    'log.access': false,
    ...first,
  }
  const textOf = (given: Settings): string => {
    const tree: Record<string, unknown> = {}
    for (const [path, value] of Object.entries({ ...base, ...given })) {
      const keys = path.split('.')
      let section = tree
      for (const key of keys.slice(0, -1)) {
        section[key] ??= {}
        section = section[key] as Record<string, unknown>
      }
      section[keys.at(-1) ?? ''] = value
    }
    // JSON is YAML.
    return JSON.stringify(tree)
  }
  // In one step: a reload between two writes would be one more than the test counts.
  const put = (text: string): void => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  const write = (given: Settings): void => put(textOf(given))
  write({})
  return { folder, file, put, write }
}

const reloads = (opsUrl: string, outcome: string) =>
  metricAt(opsUrl, `abohawa_config_reloads_total{outcome="${outcome}"}`)
/** A change while the first polls read what is there would be read twice, or not as a change. */
const hasReadAll = (opsUrl = '') =>
  until('what is there has been read', async () => (await reloads(opsUrl, 'unchanged')) > 0)

const usualPoll = '20ms'
const start = async (t: Test, first: Settings = {}, pollEvery = usualPoll) => {
  const { file, put, write } = await configFile(t, first)
  const { child, urls, lines } = await startCommand(t, ['serve', '--config', file], ['ops', 'api'], {
    ABOHAWA_TEST_CONFIG__POLL_EVERY: pollEvery,
  })
  const metric = (name: string) => metricAt(urls.ops ?? '', name)
  const outcomes = (outcome: string) => reloads(urls.ops ?? '', outcome)
  if (pollEvery === usualPoll) await hasReadAll(urls.ops)
  const ready = async () => {
    const response = await fetch(`${urls.ops}/readyz`)
    const { detail } = (await response.json()) as { detail: { configuration: string } }
    return { status: response.status, detail }
  }
  const logged = (msg: RegExp) => lines.map(line => JSON.parse(line)).filter(line => msg.test(line.msg))
  const makeKey = async (tier: string): Promise<string> => {
    const of = ['--subscriber', 'Load', '--tier', tier, '--json', '--config', file]
    return (JSON.parse((await runCommand(['keys', 'create', ...of])).stdout) as { key: string }).key
  }
  const key = await makeKey('enterprise')
  return { file, put, write, child, urls, metric, outcomes, ready, logged, key, makeKey }
}

/** Consumers who ask again soon after they have an answer, until `stop`, which gives every answer that was not 200. */
const startConsumers = (t: Test, api: string, key: string) => {
  const agent = new Agent({ connections: 8, connect: { rejectUnauthorized: false } })
  t.teardown(() => agent.close())
  const failed: string[] = []
  let asked = 0
  let isOver = false
  const endsAt = performance.now() + 200_000
  const consume = async (path: string): Promise<void> => {
    while (!isOver && performance.now() < endsAt) {
      try {
        const options = { dispatcher: agent, headers: { 'x-api-key': key } }
        const { statusCode, body } = await request(`${api}/api/v1${path}`, options)
        const text = await body.text()
        if (statusCode !== 200) failed.push(`${path}: ${statusCode} ${text}`)
      } catch (error) {
        failed.push(`${path}: ${error}`)
      }
      asked += 1
      // Requests are under way at any time, and the gateway has time for its own work.
      await pause(4)
    }
  }
  const weather = ['/weather/district/3026', '/forecast/division/30', '/weather/coords/23.8/90.4']
  const consumers = [...weather, '/locations?type=division'].map(consume)
  t.teardown(() => {
    isOver = true
  })
  return {
    asked: () => asked,
    stop: async () => {
      isOver = true
      await Promise.all(consumers)
      return failed
    },
  }
}

// Each to a value under which nobody has to be turned away.
const others: Settings = {
  'server.maxConnections': 50,
  'server.maxConnectionsPerAddress': 80,
  'provider.budget.keyShare': 0.5,
  'server.cors.origins': ['https://app.example.org'],
  'provider.budget.perMinute': 100_000,
  'provider.budget.perHour': 100_000,
  'provider.budget.perDay': 1_000_000,
  'provider.budget.reserve': 0.2,
  'cache.freshFor': '100ms',
  'cache.freshForAtMost': '11h',
  'cache.staleFor': '11h',
  'quota.tiers': { enterprise: 900_000 },
  'log.level': 'warn',
  'log.access': 0.5,
}
for (const by of ['file', 'SIGHUP'] as const)
  t.test(`all that is live is changed by ${by} and back, and no request fails`, async t => {
    const first = { 'quota.tiers': { enterprise: 1_000_000 } }
    const { write, child, urls, outcomes, key, metric } = await start(
      t,
      first,
      by === 'file' ? usualPoll : '1h',
    )
    const consumers = startConsumers(t, urls.api ?? '', key)
    await until('consumers are served', () => consumers.asked() > 20)
    for (const [i, given] of [others, {}, others].entries()) {
      const before = consumers.asked()
      write(given)
      if (by === 'SIGHUP') child.kill('SIGHUP')
      await until(`change ${i} is applied`, async () => (await outcomes('applied')) === i + 1)
      await until('consumers have answers after it', () => consumers.asked() > before + 50)
    }
    t.strictSame(await consumers.stop(), [])
    t.equal(await outcomes('refused'), 0)
    t.equal(await metric('abohawa_config_restart_needed'), 0)
  })

t.test('a broken file changes nothing, and log, metric and /readyz tell until it is mended', async t => {
  const { file, put, write, urls, outcomes, ready, logged, metric, key } = await start(t)
  const consumers = startConsumers(t, urls.api ?? '', key)
  t.equal((await ready()).detail.configuration, 'in effect')
  const refusals = () => logged(/^configuration rejected, keeping the previous one$/)
  const faulty: [what: string, change: () => unknown, reason: RegExp][] = [
    ['no YAML', () => put('cache: {'), /gateway\.yaml:1:9: the file is no valid YAML$/],
    [
      'a wrong value',
      () => put('cache:\n  freshFor: 2\nserver:\n  port: 0'),
      /gateway\.yaml:2:13: cache\.freshFor is invalid$/,
    ],
    ['no file', () => rmSync(file), /the config file can't be read: there is no such file/],
    // One fault beside a live change: neither is applied.
    [
      'what it points to',
      () => write({ 'cache.staleFor': '2h', 'store.path': '/dev/null/a.db' }),
      /store\.path is invalid$/,
    ],
  ]
  for (const [i, [what, change, reason]] of faulty.entries()) {
    change()
    await until(`${what} is refused`, async () => (await outcomes('refused')) === i + 1)
    await until('the log says so', () => refusals().length > i)
    t.match(refusals().at(-1), { level: 'error', reason }, what)
    t.equal(await metric('abohawa_config_refused'), 1)
    const { status, detail } = await ready()
    t.equal(status, 200, 'it still wants traffic')
    t.match(detail.configuration, /^newer one rejected: /)
    t.match(detail.configuration, reason)
  }
  t.equal(await outcomes('applied'), 0)
  // Each is a slip beside a secret.
  for (const [i, text] of [
    'ops:\n  token:secret-1\n',
    'ops:\n  token secret-1\n',
    'ops:\n  token: secret-1: 2\n',
    'ops: secret-1\n',
    'secret-1: 5\n',
    'server:\n  port: secret-1\n',
    'ops:\n  token: "secret-1\n',
    'quota:\n  tiers:\n    secret-1: many\n',
    'provider:\n  fallbacks: [secret-1]\n',
    'server:\n  tls: { cert: secret-1, key: secret-1 }\n',
  ].entries()) {
    put(text)
    await until(`${text} is refused`, async () => (await outcomes('refused')) === faulty.length + i + 1)
    await until('the log says so', () => refusals().length > faulty.length + i)
    t.match(
      (await ready()).detail.configuration,
      /^newer one rejected: .*gateway\.yaml:\d+:\d+: [\w. ]+$/,
      text,
    )
  }
  t.notMatch(JSON.stringify([refusals(), await ready()]), /secret-1/)
  write({})
  await until('it is mended', async () => (await metric('abohawa_config_refused')) === 0)
  t.equal((await ready()).detail.configuration, 'in effect')
  t.strictSame(await consumers.stop(), [])
})

const subjectOf = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.on('error', reject)
  })

t.test('new connections see a renewed certificate, open ones go on, and a wrong one is refused', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-certificates-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const put = (name: string, ends = ['crt', 'key']) => {
    // In one step, as above.
    for (const end of ends) {
      copyFileSync(fixture(`${name}.${end}`), join(folder, 'new'))
      renameSync(join(folder, 'new'), join(folder, `tls.${end}`))
    }
  }
  put('localhost')
  const { urls, key, metric, outcomes, logged, write, ready } = await start(t, {
    'server.tls': { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') },
  })
  const api = urls.api ?? ''
  const consumers = startConsumers(t, api, key)
  const former = await subjectOf(api)
  // A key that does not belong to the certificate.
  put('renewed', ['key'])
  await until('it is refused', async () => (await outcomes('refused')) === 1)
  t.match((await ready()).detail.configuration, /no certificate and key in PEM form that belong together/)
  t.equal(await subjectOf(api), former)
  // Each a right pair, which no client would take.
  await t.test('a chain that clients refuse is refused', { skip: withoutOpenssl }, async t => {
    const { key: own, fileOf } = makeChain(t.testdir())
    copyFileSync(own, join(folder, 'tls.key'))
    copyFileSync(fileOf('server', 'stranger'), join(folder, 'tls.crt'))
    await until('its chain is refused', async () =>
      /which clients refuse: certificate 2 of its chain/.test((await ready()).detail.configuration),
    )
    t.equal(await subjectOf(api), former)
  })
  const expiry = () => metric('abohawa_tls_certificate_expiry_timestamp_seconds')
  const expiresAt = (name: string) =>
    new X509Certificate(readFileSync(fixture(`${name}.crt`))).validToDate.getTime() / 1000
  t.equal(await expiry(), expiresAt('localhost'))
  put('renewed')
  await until('it is shown', async () => (await subjectOf(api)) !== former)
  t.equal(await expiry(), expiresAt('renewed'))
  await until('the log says so', () => logged(/^certificate replaced$/).length === 1)
  // Other files, which come after the configuration that names them; back to the certificate of before.
  write({ 'server.tls': { cert: join(folder, 'later.crt'), key: join(folder, 'later.key') } })
  // Not by the count of refusals: a certificate that is read while it is copied is refused too.
  await until('they are missed', async () =>
    /server\.tls\.cert is invalid/.test((await ready()).detail.configuration),
  )
  t.not(await subjectOf(api), former)
  for (const end of ['crt', 'key']) copyFileSync(fixture(`localhost.${end}`), join(folder, `later.${end}`))
  await until('the former is shown', async () => (await subjectOf(api)) === former)
  write({ 'server.tls': { cert: null, key: null } })
  await until('HTTP needs a restart', () =>
    logged(/^settings need a restart$/).find(
      ({ settings }) => String(settings) === 'server.tls.cert,server.tls.key',
    ),
  )
  t.equal(await subjectOf(api), former)
  t.strictSame(await consumers.stop(), [])
})

t.test('a secret that is rotated is named, and shown nowhere', async t => {
  const { folder, file } = await configFile(t)
  const [secret, another] = [join(folder, 'key'), join(folder, 'key-of-a-fallback')]
  for (const each of [secret, another]) writeFileSync(each, 'former-key\n')
  const { lines, urls } = await startCommand(t, ['serve', '--config', file], ['ops', 'api'], {
    ABOHAWA_PROVIDER__API_KEY__FILE: secret,
    ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify([{ baseUrl: 'http://127.0.0.1:9', apiKeyFile: another }]),
    ABOHAWA_TEST_CONFIG__POLL_EVERY: '20ms',
  })
  await hasReadAll(urls.ops)
  const named = (...paths: string[]) =>
    lines.some(line => line.includes(`"settings":${JSON.stringify(paths)}`))
  writeFileSync(secret, 'present-key\n')
  await until('the secret needs a restart', () => named('provider.apiKey'))
  writeFileSync(another, 'present-key\n')
  await until('that of the fallback too', () => named('provider.apiKey', 'provider.fallbacks[0].apiKey'))
  t.notMatch(lines.join(), /(former|present)-key/)
})

t.test('a tier that is taken out or misspelt keeps its limit until the next start', async t => {
  const { file, write, urls, key, ready, logged, metric, makeKey } = await start(t)
  const applied = () => logged(/^configuration reloaded$/)
  write({ 'quota.tiers': { gold: 5000, silver: 400 } })
  await until('there are such tiers', () => applied().length === 1)
  const gold = await makeKey('gold')
  const limitOf = async (presented: string) => {
    const response = await fetch(`${urls.api}/api/v1/locations?type=division`, {
      headers: { 'x-api-key': presented },
    })
    return [response.status, response.headers.get('x-ratelimit-limit')]
  }
  t.strictSame(await limitOf(gold), [200, '5000'])
  write({ 'quota.tiers': { goldd: 6000, silver: 500 } })
  await until('the rest is applied', () => applied().length === 2)
  await until('the log tells of the tier', () => logged(/^tiers removed/).length > 0)
  t.strictSame(applied()[1]?.changes, ['quota.tiers.goldd: none → 6000', 'quota.tiers.silver: 400 → 500'])
  t.strictSame(await limitOf(gold), [200, '5000'])
  t.strictSame(await limitOf(key), [200, '100000'])
  t.match(logged(/^tiers removed/), [
    { level: 'warn', tiers: ['gold'], next: /after a restart these keys get 500$/ },
  ])
  t.equal(await metric('abohawa_config_restart_needed'), 1)
  t.equal((await ready()).detail.configuration, 'in effect; needs a restart: quota.tiers.gold')
  const { stdout, code } = await runCommand(['doctor', '--json', '--no-spend', '--config', file])
  const { checks } = JSON.parse(stdout) as { checks: { name: string }[] }
  t.equal(code, 1)
  t.match(checks.find(({ name }) => name === 'tiers') ?? {}, {
    status: 'fail',
    detail: '1 key is on gold, which quota.tiers does not have: a gateway that starts now answers it 500',
    fix: /^Put the tier back into quota\.tiers, or move the keys: .*keys set/,
  })
  write({ 'quota.tiers': { gold: 7000, silver: 500 } })
  await until('it is put back', async () => (await limitOf(gold))[1] === '7000')
  t.equal(await metric('abohawa_config_restart_needed'), 1, 'goldd may have keys by now')
})
