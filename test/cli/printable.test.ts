// Without this, names and reasons from outside could control the operator's terminal.

import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { createKey, hashOf } from '../../src/keys/key-form.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { leakIn } from '../support/key-spellings.ts'
import { listenOn } from '../support/listening.ts'
import { checkOutput, runCommands } from '../support/printed.ts'
import { runCommand } from '../support/process.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'
import { patientRedisEnv } from '../support/redis-server.ts'

const root = join(import.meta.dirname, '..', '..')
// Arguments and file names can't contain NUL, and file names no slash.
const hostileArgument = hostileText.replaceAll('\0', '').replaceAll('/', '')

t.test('names that a store holds from before are shown escaped, each in its row', async t => {
  const folder = t.testdir()
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  const store = openEmbeddedStore(env.ABOHAWA_STORE__PATH, systemClock)
  // The store reads a text up to a NUL.
  const name = `Evil${hostileText.replaceAll('\0', '')}${'n'.repeat(150)}`
  await store.ensureSubscriber({ id: 'sub_evil', name, createdAt: 0, revokedAt: null })
  await store.addKey({
    ...{ id: 'key_evil', hash: hashOf(createKey()), subscriberId: 'sub_evil', tier: `gold${hostileText}` },
    ...{ limit: 5, createdAt: 0, revokedAt: null, expiresAt: null, externalId: null, previousHashes: [] },
    ...{ restrictions: null, rates: null },
  })
  await store.close()

  const lists = [
    ['subscribers', 'list'],
    ['keys', 'list'],
    ['keys', 'show', 'key_evil'],
    ['subscribers', 'revoke', 'sub_evil'],
    ['subscribers', 'revoke', '--undo', 'sub_evil'],
  ]
  for (const { stdout } of await checkOutput(t, lists, { code: 0 }, env)) {
    t.equal(stdout.split('\n').length, 3, 'a heading, one row, and the end')
    t.ok(stdout.includes('Evila\\u001b[2J'))
  }
  const usage = ['keys', 'usage', 'key_evil', '--days', '2']
  const others = [usage, ['keys', 'rotate', 'key_evil'], ['store', 'copy', '--to', join(folder, 'other.db')]]
  await checkOutput(t, others, { code: 0 }, env)
  const create = ['keys', 'create', '--subscriber', hostileArgument, '--tier', 'free']
  await checkOutput(t, [create], { code: 1 }, env)
  const json = JSON.parse((await runCommand(['subscribers', 'list', '--json'], env)).stdout)
  t.ok(json[0].name === name, 'JSON gives the name back as it is')

  const exported = (await runCommand(['store', 'export'], env)).stdout
  t.equal(rawControlIn(exported), undefined)
  t.ok(JSON.parse(exported.split('\n')[0] ?? '').name === name)
})

t.test('an import with such a name is refused by its line', async t => {
  const folder = t.testdir()
  const subscriber = { record: 'subscriber', id: 'sub_1', name: 'A', createdAt: 0, revokedAt: null }
  const key = {
    ...{ record: 'key', id: 'key_1', hash: 'h', subscriberId: 'sub_1', tier: 'free', limit: null },
    ...{ createdAt: 0, revokedAt: null, expiresAt: null, externalId: null, formers: [] },
  }
  const end = { record: 'end', subscribers: 1, keys: 1, usage: 0 }
  const control = 'it has a control or bidi character; nothing was imported'
  const named = (name: string) => [{ ...subscriber, name }, key, end]
  const keyed = (fields: object) => [subscriber, { ...key, ...fields }, end]
  const cases: [object[], sentence: string][] = [
    [named('A\u001b[2J\u202e'), `line 1 of .* is damaged: its name is wrong: ${control}`],
    [named('A'.repeat(1_000_000)), 'line 1 of .*: its name is wrong: it is longer than 200 characters; n'],
    [keyed({ tier: 'gold\u202e' }), `line 2 of .*: its tier is wrong: ${control}`],
    [[{ ...subscriber, [`x${hostileText}`]: 1 }, key, end], 'line 1 of .* is damaged'],
    [[{ record: '\u001b[2J\u202e' }], 'line 1 of .* is damaged: it is not a record'],
  ]
  const files = cases.map(([records], i) => {
    const file = join(folder, `${i}.ndjson`)
    writeFileSync(file, records.map(record => `${JSON.stringify(record)}\n`).join(''))
    return file
  })
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  const take = (file: string) => ['store', 'import', '--create-store', file]
  const ended = await checkOutput(t, [...files, join(folder, hostileArgument)].map(take), { code: 1 }, env)
  for (const [i, [, sentence]] of cases.entries()) t.match(ended[i]?.stderr, new RegExp(sentence))

  const good = join(folder, 'good.ndjson')
  writeFileSync(good, [subscriber, key, end].map(record => `${JSON.stringify(record)}\n`).join(''))
  await checkOutput(t, [take(good)], { code: 0 }, env)
})

t.test('a configuration is complained of in clean lines', async t => {
  const folder = t.testdir()
  const file = join(folder, 'evil.yaml')
  const value = JSON.stringify(`a${hostileText}${'v'.repeat(3_000)}`)
  const name = JSON.stringify(`a${hostileText}${'v'.repeat(300)}`)
  writeFileSync(
    file,
    `log: { level: ${value} }\nstore: { path: ${value} }\n${name}: 1\nprovider:\n  baseUrl: ${value}\n  budget: { ${name}: 1 }\nquota: { tiers: { ${name}: 1, free: ${value} } }\nredis: { url: ${value}, prefix: ${value} }\ncache: { freshFor: ${value} }\n`,
  )
  const [wrong, json] = await runCommands([
    ['config', 'check', '--config', file],
    ['config', 'check', '--config', file, '--json'],
  ])
  const faults = (wrong?.stderr ?? '').trimEnd().split('\n')
  t.equal(wrong?.code, 1)
  t.equal(rawControlIn(wrong?.stderr ?? ''), undefined)
  for (const line of faults) {
    t.match(line, /evil\.yaml:\d+:\d+: /)
    t.ok(line.length < 1_500, `${line.length} characters`)
  }
  t.ok(faults.length >= 10, 'a line for each fault')
  t.match(
    wrong?.stderr,
    /store\.path must be a file path, without control characters, got "aa\\u001b\[2J.*…"/,
  )
  t.equal(rawControlIn(json?.stdout ?? ''), undefined)
  t.equal(JSON.parse(json?.stdout ?? '').faults.length, faults.length)

  const broken = join(folder, 'broken.yaml')
  writeFileSync(broken, `a: [${hostileText}`)
  const files = [broken, join(folder, `${hostileArgument}.yaml`)]
  const lines = files.map(each => ['config', 'print', '--config', each])
  await checkOutput(t, lines, { code: 1 })
})

t.test('a catalogue is complained of in clean lines, and its labels hold no controls', async t => {
  const folder = t.testdir()
  const text = readFileSync(join(root, 'locations.json'), 'utf8')
  const label = JSON.stringify(`Dha${hostileText}ka`)
  const broken = {
    'no-json': `${hostileText}${text}`,
    name: text.replace('"Dhaka"', label),
    title: text.replace(/"title": ?"Bangladesh"/, `"title":${label}`),
    source: text.replace(/"licence": ?"MIT"/, `"licence":${label}`),
    id: text.replace(/"id": ?"30"/, `"id":${label}`),
    field: text.replace(/"id": ?"30"/, `${label}:1,"id":"30"`),
  }
  const checked = (name: string, content: string) => {
    t.not(content, text, name)
    writeFileSync(join(folder, name), content)
    return ['catalogue', 'check', join(folder, name)]
  }
  const files = Object.entries(broken).map(([title, content]) => checked(`${title}.json`, content))
  const tables = [
    `id,type,${hostileText}\n1,2,3\n`,
    `id,type\n"${hostileText},2\n`,
    `id,type,parent\n${hostileText},${hostileText},"x"y"\n`,
  ].map((csv, i) => checked(`${i}.csv`, csv))
  for (const { stdout } of await checkOutput(t, [...files, ...tables], { code: 1 })) {
    const isShort = stdout !== '' && stdout.split('\n').every(line => line.length < 2_500)
    t.ok(isShort, 'short lines')
  }
  const publish = ['catalogue', 'publish', '3026']
  const bad = { ABOHAWA_CATALOGUE__PATH: join(folder, 'name.json') }
  await checkOutput(t, [publish, ['catalogue', 'check', join(folder, hostileArgument)]], { code: 1 }, bad)
  const good = { ABOHAWA_CATALOGUE__PATH: join(root, 'locations.json') }
  await checkOutput(t, [['catalogue', 'publish', hostileArgument]], { code: 1, json: false }, good)
})

t.test('what Redis says is printed escaped', async t => {
  const message = `-ERR \u001b[31mred\u009b0m \u202e${'x'.repeat(10_000)}\r\n`
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(message))
  })
  const port = await listenOn(t, server)
  const env = { ...patientRedisEnv, ABOHAWA_REDIS__URL: `redis://127.0.0.1:${port}` }
  const [list] = await checkOutput(t, [['keys', 'list']], { code: 1, json: false }, env)
  t.match(list?.stderr, /which can't be used: ERR \\u001b\[31mred\\u009b0m/)
})

const evil = `e${hostileText}${'r'.repeat(10_000)}`
const at = '2026-11-21T06:00:00.000Z'

/** A value from outside makes no line of its own, and no long one. */
const isShort = (t: Test, text = '', length: number, lines: number) =>
  t.ok(text.length < length && text.split('\n').length < lines, `${text.length} characters`)

/** A gateway that gives each request the same answer. */
const startAnswering = async (t: Test, answer: () => { status: number; body: object }) => {
  const server = createHttpServer((_request, response) => {
    const { status, body } = answer()
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  return `http://127.0.0.1:${await listenOn(t, server)}`
}

t.test('what a gateway says is printed escaped, for people and as JSON', async t => {
  let answer: { status: number; body: object } = { status: 400, body: { error: evil } }
  const address = await startAnswering(t, () => answer)
  const show = ['cache', 'show', 'district/3026', '--gateway', address]
  await checkOutput(t, [show], { code: 1 })
  const instants = { fetchedAt: at, run: null, dueAt: at, freshUntil: at, usableUntil: at }
  const entry = { state: 'fresh', ...instants, purged: null, bytes: 1 }
  const lastFailure = { code: evil, message: evil, failedAt: at, attempts: 2, backoffUntil: at }
  const state = { memory: entry, freshness: 'run', newestRun: null, stretch: 1, loading: false }
  const cell = { cell: { id: evil, latitude: 1, longitude: 2 }, cellDegrees: 0.1, at }
  const body = {
    ...{ of: evil, place: { type: evil, id: evil, name: evil }, ...cell },
    ...{
      shared: { kind: evil, entry, fault: evil },
      gateway: { ...state, lastRequestedAt: at, lastFailure },
    },
  }
  answer = { status: 200, body }
  const [shown] = await checkOutput(t, [show], { code: 0 })
  isShort(t, shown?.stdout, 15_000, 30)
})

t.test('what a gateway reports of its fleet is printed escaped, for people and as JSON', async t => {
  const none = Array.from({ length: 360 }, () => null)
  const instance = {
    ...{ id: evil, host: evil, pid: 1, version: evil, startedAt: at, phase: 'ready', configHash: evil },
    ...{ requestsPerSecond: 1, hitShare: 1, memoryBytes: 1, seenAt: at, isSelf: true },
  }
  const day = { name: 'day', limit: 1, used: 1, resetsAt: at, exhaustedAt: at }
  const lastFailure = { at, code: evil, message: evil }
  const closure = { until: at, reason: evil }
  const counts = { fresh: 1, stale: 1, absent: 1, failed: 1 }
  const reach = { allowedSeconds: 111_600, share: 0.96, leastSeconds: 97_200 }
  const report = {
    ...{ at, version: evil, instances: [instance] },
    outages: [{ outage: 'provider', since: at, code: evil, reason: evil, failures: 1, stale: 1, errors: 1 }],
    provider: { circuit: 'open', retryAt: at, lastSuccessAt: at, lastFailure, firstErrorAt: at },
    budget: { shared: false, windows: [day], demandPerDay: 1, stretch: null, closure },
    run: { initialisedAt: at, availableAt: at, nextExpectedAt: at },
    cache: { entries: 1, bytes: 1, maxBytes: 1, wantedCells: 1, reach, counts },
    store: { kind: 'redis', isUp: true, latencyMs: 1, usedBytes: 1, fault: evil },
    catalogue: { places: 1, checksum: evil, fault: evil },
    certificate: { expiresAt: at, renewal: 'due' },
    config: { hash: evil, appliedAt: at, fault: evil, needsRestart: [evil], differs: [evil] },
    keysNearLimit: [{ keyId: evil, subscriber: evil, tier: evil, used: 1, limit: 1 }],
    top: {
      places: [{ type: evil, id: evil, name_en: evil, name_bn: evil, requests: 1 }],
      keys: [{ keyId: evil, requests: 1, cellsLoaded: 2, shareOfDay: 0.5 }],
    },
    history: {
      ...{ stepSeconds: 10, endsAt: at, requestsPerSecond: none, errorsPerSecond: none },
      ...{ hitShare: { memory: none, shared: none, provider: none }, p50: none, p90: none, p99: none },
    },
  }
  const address = await startAnswering(t, () => ({ status: 200, body: report }))
  const [shown] = await checkOutput(t, [['status', '--gateway', address]], { code: 0 })
  const { stdout = '', stderr = '' } = shown ?? {}
  t.equal(stderr, '', 'the report is one')
  t.match(stdout, /\n {2}circuit .*open, next try now\n/)
  t.match(
    stdout,
    /^Abohawa .*\nbudget closed, .* until 12:00 \(now\): e.*\nabohawa budget reopen .*\nprovider outage/,
  )
  isShort(t, stdout, 40_000, 50)
  report.store.isUp = false
  report.instances.push({ ...instance, phase: 'hacked' })
  const [other] = await checkOutput(t, [['status', '--gateway', address]], { code: 1 })
  t.match(other?.stderr, /no gateway answered at .*: it answered 200, and is no gateway of this version/)
})

t.test('what a command line says is repeated escaped and short, without keys', async t => {
  const key = createKey()
  const usageErrors: string[][] = [
    [hostileArgument],
    ['keys', hostileArgument],
    ['keys', 'list', `--${hostileArgument}`],
    ['keys', 'create', '--subscriber', 'A', '--tier', hostileArgument],
    ['keys', 'usage', 'key_1', '--days', hostileArgument],
    ['keys', 'rotate', 'key_1', '--overlap', hostileArgument],
    ['cache', 'show', hostileArgument],
    ['cache', 'show', `${hostileArgument}/3026`],
    ['cache', 'show', 'district/3026', '--gateway', hostileArgument],
    ['cache', 'purge', hostileArgument],
    ['cache', 'warm', '--force', hostileArgument],
    ['provider', '--limits', hostileArgument],
    ['demo', '--upstream', hostileArgument],
    ['store', 'copy', '--to', 'redis://127.0.0.1:1', '--to-prefix', hostileArgument],
  ]
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  await checkOutput(t, usageErrors, { code: 2, json: false }, env)
  const unknown = [
    ['keys', 'show', hostileArgument],
    ['subscribers', 'revoke', hostileArgument],
    ['cache', 'show', `district/${hostileArgument}`],
  ]
  await checkOutput(t, unknown, { code: 1, json: false }, { ...env, ABOHAWA_OPS__PORT: '1' })

  const filledWith = (text: string) =>
    [...usageErrors, ...unknown].map(args => args.map(each => each.replace(hostileArgument, () => text)))
  for (const { stdout, stderr } of await runCommands(filledWith(key), env))
    t.equal(leakIn(stdout + stderr, key), undefined)
  for (const { code, stderr } of await runCommands(filledWith('w'.repeat(1_000_000)), env)) {
    t.not(code, 0)
    t.ok(stderr.length < 2_500, `${stderr.length} characters`)
  }
})
