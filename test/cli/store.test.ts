// Without this, moving a store could lose keys, subscribers or usage.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createCalendar, daysUpTo } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { type Administration, createAdministration } from '../../src/keys/administration.ts'
import { openStore, type StoreOptions } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { freePort } from '../support/listening.ts'
import { type Ended, runCommand } from '../support/process.ts'
import { patientRedisEnv, testRedis } from '../support/redis-server.ts'
import { patient } from '../support/redis-store.ts'

const calendar = createCalendar('Asia/Dhaka')
const tiers = { free: 100, starter: 1_000, business: 10_000 }

type Place = { redis: { url: string | null; prefix: string }; path: string }

/** A store with its commands and, for everything not under test, a direct connection. */
const at = ({ redis, path }: Place) => {
  const env: Record<string, string> =
    redis.url === null
      ? { ABOHAWA_STORE__PATH: path }
      : { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: redis.prefix }
  const options: StoreOptions = { redis: { ...redis, ...patient }, store: { path } }
  const open = async <Result>(act: (administration: Administration, store: Store) => Promise<Result>) => {
    const store = await openStore(options, systemClock, { redisAway: () => {}, redisBack: () => {} })
    try {
      return await act(createAdministration({ store, tiers, calendar, clock: systemClock }), store)
    } finally {
      await store.close()
    }
  }
  const command = (...args: string[]): Promise<Ended> => runCommand(args, env)
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(...args, '--json')
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }
  return { command, json, open }
}
const inFile = (path: string) => at({ redis: { url: null, prefix: 'x:' }, path })

const [today = '', before = ''] = daysUpTo(calendar.dayOf(Date.now()), 2)

/** A store with two subscribers, a rotated key with a limit, a revoked one, and counts of two days; and its export. */
const filled = async (t: Test) => {
  const folder = t.testdir()
  const path = join(folder, 'store.db')
  const here = inFile(path)
  const ids = await here.open(async (administration, store) => {
    const one = await administration.createKey('Dhaka Tribune', 'starter')
    const request = { subscriber: 'যমুনা', tier: 'free', externalId: 'crm/2', expires: '90d' }
    const [two] = (await Array.fromAsync(administration.createKeys([request]))).flat()
    if (!two) throw new Error('no key')
    await administration.rotateKey(one.id, 3_600_000)
    await administration.setKey(one.id, { limit: 77 })
    await administration.setKey(two.id, {
      restrictions: { origins: ['https://a.example'] },
      rates: { perMinute: 9 },
    })
    await administration.revokeKey(two.id)
    await store.raiseUsed(one.id, today, 12, Date.now() + 1e9)
    await store.raiseUsed(one.id, before, 70, Date.now() + 1e9)
    return [one.id, two.id] as const
  })
  const file = join(folder, 'export.ndjson')
  t.hasStrict(await here.json('store', 'export', '--file', file), { file, subscribers: 2, keys: 2, usage: 2 })
  return { ...here, folder, path, file, ids }
}
const lookOf = ({ open }: Pick<ReturnType<typeof at>, 'open'>, id: string) =>
  open(async administration => ({
    keys: await administration.listKeys(),
    subscribers: await administration.listSubscribers(),
    days: (await administration.usage(id, 3)).days,
  }))

t.test('an export is taken in whole and once, into either store, and back', async t => {
  const from = await filled(t)
  t.equal(statSync(from.file).mode & 0o777, 0o600)
  t.notMatch(readFileSync(from.file, 'utf8'), /svc_live_/)
  const expected = await lookOf(from, from.ids[0])
  t.match(expected.days, [{ used: 12 }, { used: 70 }, { used: 0 }])
  t.ok(expected.keys[0]?.formerKeyUntil, 'the overlap moves too')
  t.match(expected.keys[1], {
    ...{ externalId: 'crm/2', expiresAt: /Z$/, rates: { perMinute: 9 } },
    restrictions: { origins: ['https://a.example'], addresses: null, endpoints: null },
  })
  const [plain = '', dated = ''] = readFileSync(from.file, 'utf8').match(/^.*"record":"key".*$/gm) ?? []
  t.match(plain, /"expiresAt":null,"externalId":null/)
  t.match(dated, /"externalId":"crm\/2".*"restrictions":\{"origins":.*"rates":\{/)
  t.notMatch(plain, /restrictions|rates/, 'version 1.0 reads the line of a key without them')
  t.equal((await from.command('store', 'export')).stdout, readFileSync(from.file, 'utf8'))

  const redis = await testRedis(t)
  const inRedis = at({ redis, path: from.path })
  for (const count of [2, 0]) {
    const taken = await inRedis.json('store', 'import', '--create-store', from.file)
    t.hasStrict(taken, { newSubscribers: count, newKeys: count, usage: 2 })
    t.strictSame(await lookOf(inRedis, from.ids[0]), expected, 'twice is once')
  }

  const path = join(from.folder, 'back.db')
  t.hasStrict(await inRedis.json('store', 'copy', '--to', path), { to: path, newSubscribers: 2, newKeys: 2 })
  const there = inFile(path)
  t.strictSame(await lookOf(there, from.ids[0]), expected)
  const onItself = await from.command('store', 'copy', '--to', from.path)
  t.match(onItself, { code: 2, stderr: /--to must be another store than the configured one/ })
  const nowhere = `127.0.0.1:${await freePort()}`
  const { host } = new URL(redis.url)
  const away = `${nowhere}, which can't be used: connect ECONNREFUSED ${nowhere}\n`
  const mode = new RegExp(`--to names ${host}, which can't be used: .*cluster support disabled`)
  for (const [source, to, said] of [
    [inRedis, [`redis://${nowhere}`], `abohawa: --to names ${away}`],
    [from, [redis.url, '--to-mode', 'cluster'], mode],
  ] as const) {
    const refused = await source.command('store', 'copy', '--to', ...to)
    t.match(refused, { code: 1, stderr: said })
  }
})

t.test('an export is for its owner alone, whatever lies in its place or beside it', async t => {
  const from = await filled(t)
  const whole = readFileSync(from.file, 'utf8')
  const folder = join(from.folder, 'shared')
  mkdirSync(folder)
  const file = join(folder, 'keys.ndjson')
  const victim = join(folder, 'victim')
  const modeOf = (path: string) => statSync(path).mode & 0o777

  // Another user who can write to the folder has prepared it.
  writeFileSync(victim, 'precious', { mode: 0o644 })
  symlinkSync(victim, `${file}.part`)
  writeFileSync(file, 'old', { mode: 0o666 })
  chmodSync(file, 0o666)
  await from.json('store', 'export', '--file', file, '--force')
  t.equal(readFileSync(file, 'utf8'), whole)
  t.equal(modeOf(file), 0o600)
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'a link is not followed')
  rmSync(`${file}.part`)

  writeFileSync(`${file}.part`, 'prepared')
  chmodSync(`${file}.part`, 0o666)
  const watched = openSync(`${file}.part`, 'r')
  await from.json('store', 'export', '--file', file, '--force')
  t.equal(modeOf(file), 0o600)
  t.equal(readFileSync(watched, 'utf8'), 'prepared', 'who holds the prepared file open sees nothing of it')
  closeSync(watched)
  rmSync(`${file}.part`)

  symlinkSync(victim, join(folder, 'link.ndjson'))
  await from.json('store', 'export', '--file', join(folder, 'link.ndjson'), '--force')
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'a link in its place is replaced')
  t.ok(lstatSync(join(folder, 'link.ndjson')).isFile())
  t.strictSame(readdirSync(folder).sort(), ['keys.ndjson', 'link.ndjson', 'victim'], 'nothing is left behind')

  // Stands for /dev/null, which a superuser would replace for the whole machine.
  const pipe = join(from.folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const [path, sentence] of [
    [folder, /^abohawa: --file is .*shared", which is not a regular file\n$/],
    [pipe, /^abohawa: --file is .*pipe", which is not a regular file\n$/],
    [
      join(folder, 'none', 'x'),
      /^abohawa: --file is .*x", which can't be written: .*none" is a folder that is missing/,
    ],
  ] as const) {
    const refused = await from.command('store', 'export', '--file', path)
    t.equal(refused.code, 1)
    t.match(refused.stderr, sentence)
  }
  t.ok(lstatSync(pipe).isFIFO())
  t.strictSame(readdirSync(folder).sort(), ['keys.ndjson', 'link.ndjson', 'victim'])
})

t.test('what is damaged, cut off or contradicts the store is named by line, nothing is taken', async t => {
  const from = await filled(t)
  const lines = readFileSync(from.file, 'utf8').trimEnd().split('\n')
  const [first] = lines
  const numberOf = (part: string) => 1 + lines.findIndex(line => line.includes(part))
  const keyLine = numberOf(`"record":"key","id":"${from.ids[0]}"`)
  const key = lines[keyLine - 1] ?? ''
  const rest = lines.slice(1)
  const target = inFile(join(from.folder, 'target.db'))
  const faults: [string, string[], RegExp][] = [
    ['no JSON', [first ?? '', '{"record":', ...rest], /line 2 of .*x\.ndjson is damaged: it is not JSON/],
    ['another record', ['{"record":"cat"}', ...lines], /line 1 of .* not a record of a subscriber/],
    ['no end', lines.slice(0, -1), /the export was cut off: its end is missing after 6 records/],
    [
      'a line less',
      lines.toSpliced(4, 1),
      /line 6 of .*: the export had 2 records of usage, but this file has 1/,
    ],
    ['more after the end', [...lines, first ?? ''], /line 8 of .*: it comes after the end/],
    ['a key first', [key, ...lines], /line 1 of .*: subscriber sub_\w+ of key key_\w+ is neither/],
    ['nothing', [''], /line 1 of .* is damaged/],
    [
      'one hash of two keys',
      lines.toSpliced(keyLine, 0, JSON.stringify({ ...JSON.parse(key), id: 'key_other' })),
      /key key_other has the hash [0-9a-f]{64}, which belongs to key_\w+/,
    ],
  ]
  for (const [field, value, fault] of [
    ['id', 'a'.repeat(201), 'it must be 1 to 200 letters, digits or the signs _ . -'],
    ['id', 'k","status":1,"x":"', 'it must be 1 to 200 letters, digits or the signs _ . -'],
    ['createdAt', 'x', ''],
    ['createdAt', 8.64e15 + 1, 'Too big: expected number to be <=8640000000000000'],
    ['limit', 1e12, 'Too big: expected number to be <=999999999999'],
  ] as const) {
    const line = JSON.stringify({ ...JSON.parse(key), [field]: value })
    faults.push([line, [line], new RegExp(`line 1 of .* is damaged: its ${field} is wrong: ${fault}`)])
  }
  await Promise.all(
    faults.map(async ([title, content, sentence], i) => {
      const file = join(from.folder, `${i}-x.ndjson`)
      writeFileSync(file, `${content.join('\n')}\n`)
      const { code, stdout, stderr } = await target.command('store', 'import', '--create-store', file)
      t.hasStrict({ code, stdout }, { code: 1, stdout: '' }, title)
      t.match(stderr, sentence, title)
      t.match(stderr, /; nothing was imported\n$/, title)
    }),
  )
  const held = await target.open((_, store) => Promise.all([store.listKeys(), store.listSubscribers()]))
  t.strictSame(held, [[], []])
  const take = ['store', 'import', '--create-store']
  t.match(await target.command(...take, '/nowhere'), { code: 1, stderr: /\/nowhere can't be read/ })

  await target.json(...take, from.file)
  await target.open(administration => administration.setKey(from.ids[0], { tier: 'business' }))
  const tier = `key ${from.ids[0]} exists with another tier: "business", and the export has "starter"`
  const said = `abohawa: line ${keyLine} of ${from.file}: ${tier}; nothing was imported`
  t.match(await target.command(...take, from.file), { code: 1, stderr: said })
  const other = inFile(join(from.folder, 'other.db'))
  await other.open(administration => administration.createKey('যমুনা', 'free'))
  const name = 'is named "যমুনা", which is the name of sub_\\w+; nothing was imported'
  const stderr = new RegExp(`line ${numberOf('যমুনা')} of .*: subscriber sub_\\w+ ${name}`)
  t.match(await other.command(...take, from.file), { code: 1, stderr })
  t.equal((await other.open(administration => administration.listKeys())).length, 1)
  const third = inFile(join(from.folder, 'third.db'))
  const request = { subscriber: 'Another', tier: 'free', externalId: 'crm/2' }
  await third.open(administration => Array.fromAsync(administration.createKeys([request])))
  const holder = /has the external id "crm\/2", which belongs to key_\w+; nothing was imported/
  t.match(await third.command(...take, from.file), { code: 1, stderr: holder })
})

t.test('an export that can be read only once is refused', async t => {
  const folder = t.testdir()
  const pipe = join(folder, 'export')
  execFileSync('mkfifo', [pipe])
  const { code, stderr } = await inFile(join(folder, 'store.db')).command(
    'store',
    'import',
    pipe,
    '--create-store',
  )
  t.not(code, 0)
  t.match(stderr, `${pipe} can't be read twice`)
})
