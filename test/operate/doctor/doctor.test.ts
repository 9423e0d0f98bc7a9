// Without it, `doctor` could misjudge versions, clocks, limits, memory, certificates and disks that no test machine has.

import { chmodSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { systemClock } from '../../../src/common/clock.ts'
import { checkFiles } from '../../../src/config/file-check.ts'
import { loadConfig, readConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/schema.ts'
import { certificateOf, createCertificateExpiry } from '../../../src/config/tls.ts'
import { checkOf, type Finding, fail, ok, skip, warn } from '../../../src/operate/doctor/check.ts'
import {
  catalogueFinding,
  certificateFindings,
  embeddedFindings,
  logFinding,
} from '../../../src/operate/doctor/files.ts'
import {
  aheadOf,
  clockFinding,
  migrationFinding,
  openFilesFinding,
} from '../../../src/operate/doctor/machine.ts'
import { budgetFinding } from '../../../src/operate/doctor/provider.ts'
import { proxyFinding } from '../../../src/operate/doctor/proxies.ts'
import {
  memoryFinding,
  persistenceFinding,
  roleFinding,
  versionFinding,
} from '../../../src/operate/doctor/redis.ts'
import { infoOf } from '../../../src/stores/redis/server.ts'
import { openEmbeddedStore } from '../../../src/stores/sqlite/embedded-store.ts'
import { makeChain, withoutOpenssl } from '../../support/certificate-chain.ts'

const configOf = (env: Record<string, string> = {}) => loadConfig({ files: [], env })
const info = (fields: Record<string, string | number>) =>
  infoOf(['# Part', ...Object.entries(fields).map(([name, value]) => `${name}:${value}`)].join('\r\n'))

type Judged = [name: string, found: Finding, status: Finding['status'], detail: RegExp]
const noEviction = { maxmemory_policy: 'noeviction' }
const memory = (fields: Parameters<typeof info>[0]) => memoryFinding(info(fields))
const proxies = (...trusted: string[]) =>
  proxyFinding(configOf({ ABOHAWA_SERVER__TRUSTED_PROXIES: `[${trusted}]` }))
const judged: Judged[] = [
  ['a kernel that hands connections on', migrationFinding('1'), 'ok', /go to another/],
  ['one that resets them', migrationFinding('0'), 'warn', /resets connections/],
  ['one that knows no such setting', migrationFinding(''), 'warn', /resets connections/],
  ['enough files', openFilesFinding(20_000, configOf()), 'ok', /20000; up to 10192/],
  ['unlimited files', openFilesFinding(Number.POSITIVE_INFINITY, configOf()), 'ok', /unlimited/],
  ['too few files', openFilesFinding(1_024, configOf()), 'fail', /1024, but up to 10192/],
  ['Redis 7', versionFinding(info({ redis_version: '7.0.15' })), 'ok', /Redis 7\.0\.15/],
  ['Valkey 8', versionFinding(info({ redis_version: '7.2.4', valkey_version: '8.0.1' })), 'ok', /Valkey 8/],
  ['Redis 6', versionFinding(info({ redis_version: '6.2.14' })), 'fail', /too old/],
  ['no version', versionFinding(info({})), 'fail', /unknown/],
  ['noeviction', memory({ ...noEviction, maxmemory: 0 }), 'ok', /noeviction/],
  ['allkeys', memory({ maxmemory_policy: 'allkeys-lru', maxmemory: 1e9 }), 'fail', /evicted/],
  ['volatile-ttl', memory({ maxmemory_policy: 'volatile-ttl', maxmemory: 1e9 }), 'warn', /counts/],
  ['nearly full', memory({ ...noEviction, maxmemory: 1e9, used_memory: 95e7 }), 'warn', /nearly full/],
  ['a file', persistenceFinding(info({ aof_enabled: 1, aof_last_write_status: 'ok' })), 'ok', /appendonly/],
  ['snapshots', persistenceFinding(info({ aof_enabled: 0 })), 'warn', /last snapshot/],
  [
    'a bad file',
    persistenceFinding(info({ aof_enabled: 1, aof_last_write_status: 'err' })),
    'fail',
    /append/,
  ],
  ['a bad snapshot', persistenceFinding(info({ rdb_last_bgsave_status: 'err' })), 'fail', /snapshot failed/],
  ['a master', roleFinding(info({ role: 'master', connected_slaves: 1 }), 'sentinel'), 'ok', /1 replica$/],
  ['a lonely master', roleFinding(info({ role: 'master' }), 'sentinel'), 'warn', /no replica/],
  ['a replica', roleFinding(info({ role: 'slave' }), 'single'), 'fail', /takes no writes/],
  ['equal clocks', clockFinding('Redis', aheadOf([900, 900], [0, 10])), 'ok', /within 0\.9 s/],
  ['a clock ahead', clockFinding('Redis', aheadOf([3_000, 3_000], [0, 1_500])), 'warn', /least 1\.5 s ahead/],
  [
    'a clock behind',
    clockFinding('Redis', aheadOf([0, 1_000], [2_500, 9_000])),
    'warn',
    /least 1\.5 s behind/,
  ],
  [
    'a clock far behind',
    clockFinding('Redis', aheadOf([0, 0], [301_000, 301_000])),
    'fail',
    /301\.0 s behind/,
  ],
  [
    'a late answer',
    clockFinding('Redis', aheadOf([0, 0], [-4_000, 0])),
    'skip',
    /within 4\.0 s of Redis: it/,
  ],
  ['no proxy', proxies(), 'ok', /no proxy is trusted/],
  ['a proxy', proxies('10.0.0.0/8'), 'ok', /10\.0\.0\.0/],
  ['everybody as a proxy', proxies('0.0.0.0/0'), 'fail', /can claim HTTPS/],
]
const budget = { at: '', account: 'a', reopenedAt: null, closedUntil: null, reason: null, reserve: 0.1 }
const day = { name: 'day' as const, limit: 100, aside: 0, resetsAt: '' }
const spent = (used: number) =>
  budgetFinding({ ...budget, windows: [{ ...day, used, left: day.limit - used }] })
const closed = { ...budget, closedUntil: '2026-11-22T00:00:02.000Z', reason: 'daily', windows: [] }
judged.push(
  ['room', spent(10), 'ok', /90 of 100 left this day/],
  ['little room', spent(95), 'warn', /nothing cached/],
  ['no limits', budgetFinding({ ...budget, windows: [] }), 'ok', /no limits/],
  ['a closure', budgetFinding(closed), 'warn', /closed until 2026-11-22.*: daily/],
)
for (const [name, found, status, detail] of judged)
  t.test(`${name}: ${status}`, t => {
    t.match(found, { status, detail })
    if (status === 'ok' || status === 'skip') t.equal(found.fix, null)
    else t.match(found.fix, /^[A-Z].*\S$/, 'and one fix')
    t.end()
  })

t.test('a check is what is worst in it, with its fixes; what is well is told where nothing is worse', t => {
  const well = [ok('a'), skip('b'), ok('c')]
  t.strictSame(checkOf('x', well), { name: 'x', status: 'ok', detail: 'a; b; c', fix: null })
  const [d, e, f] = [warn('d', 'Do d.'), fail('e', 'Do e.'), fail('f', 'Do e.')]
  t.strictSame(checkOf('x', [...well, d]), { name: 'x', status: 'warn', detail: 'd', fix: 'Do d.' })
  const worst = { name: 'x', status: 'fail', detail: 'e; f', fix: 'Do e.' }
  t.strictSame(checkOf('x', [e, ...well, d, f]), worst)
  t.hasStrict(checkOf('x', [skip('b')]), { status: 'skip', detail: 'b', fix: null })
  t.hasStrict(checkOf('x', [e, fail('f', 'Do f.')]), { fix: 'Do e. Do f.' })
  t.end()
})

const fixtures = join(import.meta.dirname, '../../fixtures')
const tls = {
  http2: true,
  cert: join(fixtures, 'localhost.crt'),
  key: join(fixtures, 'localhost.key'),
  ticketKey: null,
}
const server: Config['server'] = { ...configOf().server, tls }

t.test(
  'a certificate expires, is not valid yet, is for another name, or does not belong to the key',
  async t => {
    const key = join(t.testdir({ 'a.key': readFileSync(tls.key) }), 'a.key')
    chmodSync(key, 0o600)
    const withFiles = (files: Partial<typeof tls>) => ({ ...server, tls: { ...tls, key, ...files } })
    const found = async (given: typeof server, host: string | undefined, now: number) =>
      checkOf('certificate', await certificateFindings(given, host, now))
    const at = Date.parse('2026-11-22')
    const own = withFiles({})
    const first = await found(own, 'localhost', at)
    t.match(first, { status: 'ok', detail: /^DNS:localhost, IP Address:127\.0\.0\.1, valid until \d{4}-/ })
    const end = Date.parse(/until (\S+)/.exec(first.detail)?.[1] ?? '')
    const dayMs = 86_400_000
    for (const [given, name, now, status, detail] of [
      [own, undefined, end - 5 * dayMs, 'warn', /^it expires on \S+ in [45] days$/],
      [own, undefined, end - 1, 'fail', /^it expires within a day, at/],
      [own, undefined, end + 2 * dayMs, 'fail', /^it expired on/],
      [own, undefined, 0, 'fail', /^it is valid only from/],
      [own, '127.0.0.1', at, 'ok', /valid until/],
      [own, 'weather.example', at, 'fail', /not for weather\.example$/],
      [withFiles({ key: join(fixtures, 'renewed.key') }), undefined, 0, 'fail', /belong together/],
      [withFiles({ cert: '/nowhere.pem' }), undefined, 0, 'fail', /\/nowhere\.pem/],
    ] as const)
      t.match(await found(given, name, now), { status, detail })
    t.match(await found(withFiles({ ticketKey: '/nowhere.key' as unknown as null }), undefined, 0), {
      status: 'fail',
      detail: /server\.tls\.ticketKey is \/nowhere\.key/,
      fix: /openssl rand 48/,
    })
    chmodSync(key, 0o644)
    t.match(await found(own, undefined, at), { status: 'warn', detail: /may open its key/, fix: /chmod 600/ })
  },
)

t.test('a chain is related, whole, valid and for the public name', { skip: withoutOpenssl }, async t => {
  const { key, fileOf } = makeChain(t.testdir())
  const now = Date.now()
  const found = async (cert: string, at = now, more: Partial<Config['server']> = {}) =>
    checkOf(
      'certificate',
      await certificateFindings({ ...server, tls: { ...tls, key, cert }, ...more }, undefined, at),
    )
  const whole = fileOf('server', 'middle', 'root')
  const in_ = (days: number) => now + days * 86_400_000
  for (const [check, status, detail] of [
    [await found(whole), 'warn', /^a certificate of its chain expires on \S+ in \d+ days$/],
    [await found(whole, in_(11)), 'fail', /^certificate 2 of its chain \(middle\) expired on \S+$/],
    [await found(fileOf('server')), 'warn', /^its chain ends with server, whose issuer is no authority/],
    [
      await found(fileOf('server', 'stranger')),
      'fail',
      /^certificate 2 of its chain \(stranger\) has issued none .*issuer of server is missing$/,
    ],
    [
      await found(fileOf('server', 'middle', 'root', 'stranger')),
      'warn',
      /^certificate 4 of its chain \(stranger\) has issued none of the others/,
    ],
    [
      await found(whole, now, { publicUrl: 'https://other.example' }),
      'fail',
      /not for other\.example of server\.publicUrl$/,
    ],
    [
      await found(whole, now, { publicUrl: 'https://other.example', trustedProxies: ['10.0.0.1'] }),
      'warn',
      /not for other\.example/,
    ],
  ] as const)
    t.match(check, { status, detail })
  const served = certificateOf({ cert: whole, key })
  const ends = createCertificateExpiry(() => served)() ?? 0
  t.ok(ends > in_(9) && ends < in_(11), 'the metric has the first end of the chain')

  const env = { ABOHAWA_SERVER__TLS__CERT: fileOf('server', 'stranger'), ABOHAWA_SERVER__TLS__KEY: key }
  const { config, origins } = readConfig({ files: [], env })
  const [fault] = await checkFiles(config, origins, now, path => path === 'server.tls.cert')
  t.match(fault, { sentence: /server\.tls\.cert is .*, which clients refuse: certificate 2 of its chain/ })
})

t.test('a catalogue loads or is named with its fault', async t => {
  const { catalogue } = configOf()
  t.match(await catalogueFinding(catalogue), { status: 'ok', detail: /^8 divisions, 64 districts/ })
  const folder = t.testdir({ 'bad.json': '{' })
  const bad = { ...catalogue, path: join(folder, 'bad.json') }
  t.match(await catalogueFinding(bad), { status: 'fail', detail: /bad\.json/ })
})

t.test('the file of the log can be written, or made, and is not made by the check', async t => {
  const folder = t.testdir({ 'a.log': '' })
  symlinkSync('a.log', join(folder, 'link'))
  const { log } = configOf()
  const found = (file: string | null) => logFinding({ ...log, file })
  t.hasStrict(found(null), { status: 'ok' })
  for (const name of ['a.log', 'new.log']) t.hasStrict(found(join(folder, name)), { status: 'ok' })
  for (const name of ['.', 'link', 'nowhere/a.log'])
    t.match(found(join(folder, name)), {
      status: 'fail',
      detail: /^log\.file is .*, which can't be written: /,
    })
  t.strictSame(readdirSync(folder).toSorted(), ['a.log', 'link'])
})

t.test('the file of the store: its folder, its content, its mode, its disk', async t => {
  const folder = t.testdir({ damaged: 'no database at all'.repeat(100) })
  const statuses = async (path: string, free = 1e12) =>
    (await embeddedFindings(path, async () => free)).map(({ status }) => status)
  t.strictSame(await statuses(join(folder, 'new.db')), ['ok', 'ok', 'ok'])
  t.strictSame(await statuses(join(folder, 'new.db'), 100 * 1_048_576), ['ok', 'ok', 'warn'])
  t.strictSame(await statuses(join(folder, 'new.db'), 1_048_576), ['ok', 'ok', 'fail'])
  chmodSync(join(folder, 'damaged'), 0o644)
  t.strictSame(await statuses(join(folder, 'damaged')), ['fail', 'warn', 'ok'])
  writeFileSync(join(folder, 'file'), '')
  t.strictSame((await embeddedFindings(join(folder, 'file', 'store.db')))[0]?.status, 'fail')
  t.strictSame(await statuses(':memory:'), ['warn'])
})

t.test('the fix for the file of the store fits its fault', async t => {
  const folder = t.testdir({ text: 'no database at all'.repeat(100) })
  const fixOf = async (name: string) => {
    const [found] = await embeddedFindings(join(folder, name), async () => 1e12)
    t.equal(found?.status, 'fail', name)
    return found?.fix
  }
  t.match(await fixOf('text'), /restore a copy.*another file in store\.path/)

  const store = openEmbeddedStore(join(folder, 'torn.db'), systemClock)
  await store.writeBytes('a', Buffer.alloc(100_000), Number.MAX_SAFE_INTEGER)
  await store.close()
  const bytes = readFileSync(join(folder, 'torn.db'))
  writeFileSync(
    join(folder, 'torn.db'),
    Buffer.concat([bytes.subarray(0, 4_196), Buffer.alloc(bytes.length - 4_196, 7)]),
  )
  t.equal(await fixOf('torn.db'), 'Stop the gateway and restore a copy.')

  const locked = new DatabaseSync(join(folder, 'locked.db'))
  locked.exec('CREATE TABLE a (b); BEGIN EXCLUSIVE')
  t.match(await fixOf('locked.db'), /other program that has locked/)
  locked.close()
})
