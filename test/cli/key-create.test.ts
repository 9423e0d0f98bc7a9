// Without this, a broken bulk creation could lose keys, create them twice, or leave them unseen.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import t, { type Test } from 'tap'
import { checkMistakes, type Mistake } from '../support/printed.ts'
import { cleanEnv, product, runCommand, spawnProgram } from '../support/process.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const setUp = (t: Test, more: Record<string, string> = {}) => {
  const folder = t.testdir()
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db'), ...more }
  const command = (...args: string[]) => runCommand(args, env)
  const create = (...args: string[]) => command('keys', 'create', '--create-store', ...args)
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const list = async () => JSON.parse((await command('keys', 'list', '--json')).stdout)
  return { folder, env, command, create, file, list }
}
const some = ['--subscriber', 'Schools', '--tier', 'free']
const head = 'subscriber,tier,external_id,limit,expires'
const rows = (text: string): Record<string, string>[] => parse(text, { columns: true })

t.test('many keys are created at once, as text, JSON and CSV', async t => {
  const { create, list } = setUp(t)
  const json = await create(...some, '--count', '30', '--json')
  t.match(json, { code: 0, stderr: /^30 created, 0 existed\. Keep the keys now/ })
  const created = JSON.parse(json.stdout)
  t.equal(new Set(created.map(({ key }: { key: string }) => key)).size, 30)
  const expected = { key: /^svc_live_\w{38}$/, tier: 'free', limit: 100, externalId: null, existed: false }
  t.match(created[0], expected)
  const text = await create(...some, '--count', '2', '--expires', '90d', '--limit', '7')
  t.match(text.stdout, /^(key_\w{12} {2}svc_live_\w{38} {2}Schools\n){2}$/)
  const csv = await create(...some, '--count', '2', '--csv')
  const row = { key: /^svc_live_/, subscriber: 'Schools', tier: 'free', existed: 'false' }
  t.match(rows(csv.stdout), [row, row])
  const all = await list()
  t.equal(all.length, 34)
  t.match(all[31], { limit: 7, ownLimit: true, expiresAt: /Z$/ })
})

t.test('test keys are created by an option, or by their tier in a file', async t => {
  const { create, command, file, list } = setUp(t)
  const key = /^svc_test_\w{38}$/
  const one = JSON.parse((await create('--subscriber', 'A', '--test', '--json')).stdout)
  t.match(one, { key, tier: 'test_key', limit: 1000 })
  const given = file('keys.csv', `${head}\nA,test_key,ci,5,\nA,free,live,,\n`)
  t.match(rows((await create('--from', given, '--csv')).stdout), [
    { key, tier: 'test_key', limit: '5' },
    { key: /^svc_live_/ },
  ])
  // Those of a file are created at once, in any order.
  const named = async (id: string | null) =>
    (await list()).find(({ externalId }: { externalId: string | null }) => externalId === id)
  t.hasStrict(await named(null), { tier: 'test_key', test: true, limit: 1000 })
  t.hasStrict(await named('ci'), { tier: 'test_key', test: true, limit: 5, ownLimit: true })
  const live = await named('live')
  t.hasStrict(live, { tier: 'free', test: false })
  t.match(JSON.parse((await command('keys', 'rotate', one.id, '--json')).stdout), { key })
  t.match(await create('--subscriber', 'A', '--test', '--tier', 'free'), { code: 2, stderr: /--test/ })
  for (const [id, tier, stderr] of [
    [one.id, 'free', /tier can't become "free", because key key_\w+ is a test key; create another key with/],
    [live.id, 'test_key', /tier can't become "test_key", because key key_\w+ is not a test key;/],
  ] as const)
    t.match(await command('keys', 'set', id, '--tier', tier), { code: 1, stderr })
})

t.test('what a file names is created once and shown or reported; a second run creates nothing', async t => {
  const { create, file, folder, list } = setUp(t)
  const lines = ['"Padma, Ltd",free,p-1,,', 'যমুনা,starter,নদী 2,50,2099-01-31', '']
  const given = file('keys.csv', `\ufeff${[head, ...lines].join('\r\n')}`)
  const out = join(folder, 'issued.csv')
  const first = await create('--from', given, '--csv', '--out', out)
  t.match(first, { code: 0, stdout: '', stderr: `2 created, 0 existed. Keep ${out} now` })
  t.equal(statSync(out).mode & 0o777, 0o600)
  const issued = rows(readFileSync(out, 'utf8'))
  t.match(issued, [
    { key: /^svc_live_/, external_id: 'p-1', subscriber: 'Padma, Ltd', limit: '100', existed: 'false' },
    { external_id: 'নদী 2', limit: '50', expires: '2099-01-31T18:00:00.000Z' },
  ])

  t.hasStrict(await create('--from', given, '--csv', '--out', out), {
    code: 1,
    stderr: `abohawa: --out is "${out}", which exists; choose a new file\n`,
  })
  const again = await create('--from', given, '--json')
  t.match(again, { code: 0, stderr: /^0 created, 2 existed\. Keys that existed are not shown again/ })
  t.hasStrict(JSON.parse(again.stdout), [
    { id: issued[0]?.id, key: null, existed: true },
    { id: issued[1]?.id, key: null, existed: true },
  ])
  file('keys.csv', `${head}\nযমুনা,starter,নদী 2,,\n"Padma, Ltd",free,p-1,,2020-01-01\nPadma,free,p-3,,\n`)
  t.match(await create('--from', given), { code: 0, stderr: /^1 created, 2 existed\./ })
  t.equal((await list()).length, 3)
})

t.test('a second run says which tiers and limits it did not change, and --apply changes them', async t => {
  const { create, file, list } = setUp(t)
  type Named = { externalId: string }
  const inOrder = async () =>
    (await list()).sort((one: Named, other: Named) => one.externalId.localeCompare(other.externalId))
  const given = file('keys.csv', `${head}\nPadma,free,p-1,,\nPadma,free,p-2,50,\nPadma,free,p-3,70,\n`)
  t.match(await create('--from', given), { code: 0, stderr: /^3 created/ })
  t.notMatch((await create('--from', given)).stderr, /Not changed/)
  const ids = (await inOrder()).map(({ id }: { id: string }) => id)
  file('keys.csv', `${head}\nPadma,starter,p-1,,\nPadma,free,p-2,60,\nPadma,free,p-3,,\n`)
  const again = await create('--from', given)
  t.equal(again.code, 0)
  const kept = `${ids[0]} (tier free, in the file starter), ${ids[1]} (limit 50, in the file 60)`
  t.match(again.stderr, `Not changed, though the file says otherwise: ${kept}. The same command with --apply`)
  t.hasStrict(await inOrder(), [{ tier: 'free' }, { limit: 50 }, { limit: 70 }])
  const applied = await create('--from', given, '--apply', '--json')
  t.match(applied.stderr, /Changed as the file says: key_/)
  t.hasStrict(JSON.parse(applied.stdout), [{ tier: 'starter', limit: 1000 }, { limit: 60 }, { limit: 70 }])
  t.has(await inOrder(), [{ tier: 'starter', limit: 1000 }, { limit: 60, ownLimit: true }, { limit: 70 }])
  t.notMatch((await create('--from', given)).stderr, /hanged/)
  file('keys.csv', `${head}\nPadma,free,p-1,1000,\n`)
  await create('--from', given, '--apply')
  t.hasStrict((await inOrder())[0], { tier: 'free', limit: 1000 }, 'the limit of the former tier')
  file('keys.csv', `${head}\nPadma,gold,p-1,,\n`)
  const refused = await create('--from', given, '--apply')
  t.match(refused, { code: 1, stderr: /line 2: tier must be one of free, .*, got "gold"/ })
  file('keys.csv', `${head}\nPadma,free,p-2,7,\nPadma,test_key,p-1,,\nPadma,free,p-4,,\n`)
  const ofTests = await create('--from', given, '--apply')
  t.match(ofTests, { code: 1, stderr: /line 3: tier can't become "test_key".*nothing was created/ })
  t.hasStrict(await inOrder(), [{ limit: 1000 }, { limit: 60 }, { limit: 70 }], 'nor changed')
})

t.test('restrictions and rates come from options and from a file, and are lifted again', async t => {
  const { create, command, file, list } = setUp(t)
  const options = '--origins https://a.example --endpoints weather,forecast --per-second 5 --burst 20'
  const one = await create(...some, ...options.split(' '))
  t.match(one.stdout, 'Its terms: origins https://a.example; endpoints weather forecast; 5/s, 20 at once.')
  const head = 'subscriber,tier,external_id,origins,addresses,endpoints,per_second,burst,per_minute'
  const given = file(
    'keys.csv',
    `${head}\nPadma,free,p-1,"https://a.example,https://*.b.example",192.0.2.0/24 2001:db8::1,,,,60\nPadma,free,p-2,,,,,,\n`,
  )
  t.match(await create('--from', given), { code: 0, stderr: /^2 created/ })
  const bound = {
    origins: ['https://a.example', 'https://*.b.example'],
    addresses: ['192.0.2.0/24', '2001:db8::1'],
    endpoints: null,
  }
  const byId = async (externalId: string | null) =>
    (await list()).find((key: { externalId: string | null }) => key.externalId === externalId)
  t.hasStrict(await byId(null), {
    restrictions: { origins: ['https://a.example'], addresses: null, endpoints: ['weather', 'forecast'] },
    rates: { perSecond: 5, burst: 20, perMinute: null },
  })
  t.has(await byId('p-1'), { restrictions: bound, rates: { perSecond: null, burst: null, perMinute: 60 } })
  t.match(await byId('p-2'), { restrictions: null, rates: null })
  const listed = rows((await command('keys', 'list', '--csv')).stdout)
  const csv = listed.find(({ external_id }) => external_id === 'p-1') ?? {}
  t.hasStrict(csv, { origins: bound.origins.join(' '), endpoints: '', per_second: '', per_minute: '60' })
  const names = ['external_id', ...head.split(',').slice(3)]
  const again = names.map(name => csv[name]).join(',')
  file('keys.csv', `subscriber,tier,${names.join(',')}\nPadma,free,${again}\n`)
  t.notMatch((await create('--from', given)).stderr, /Not changed/, 'a list reads as the file that made it')
  const table = (await command('keys', 'list')).stdout
  t.match(table, / rates +endpoints +origins +addresses\n/)
  t.match(table, / 60\/min .* https:\/\/a\.example https:\/\/\*\.b\.example +192\.0\.2\.0\/24 2001:db8::1\n/)

  file('keys.csv', `${head}\nPadma,free,p-1,none,,weather,none,,\n`)
  const kept = /terms origins .*; 60\/min, in the file addresses .*; endpoints weather; 60\/min\)/
  t.match((await create('--from', given)).stderr, kept)
  await create('--from', given, '--apply')
  t.hasStrict(await byId('p-1'), {
    restrictions: { origins: null, addresses: bound.addresses, endpoints: ['weather'] },
    rates: { perMinute: 60 },
  })
  const lift = '--addresses none --endpoints none --per-minute none --json'
  const lifted = await command('keys', 'set', 'external:p-1', ...lift.split(' '))
  t.match(JSON.parse(lifted.stdout), { restrictions: null, rates: null })
  file('keys.csv', `${head}\nPadma,free,p-3,x,,,,,\nPadma,free,p-2,,,,,5,\nPadma,free,p-4,,1.2.3,,-1,,\n`)
  const faults =
    /line 2: the origin must be .*, got "x".*line 4: the address must be an IP .*, got "1\.2\.3".*nothing was created/
  t.match(await create('--from', given), { code: 1, stderr: faults })
  file('keys.csv', `${head}\nPadma,free,p-2,,,,,5,\n`)
  t.match(await create('--from', given, '--apply'), {
    code: 1,
    stderr: /line 2: burst requires per-second/,
  })
})

t.test('one key has an external id, by which commands name it', async t => {
  const { create, command } = setUp(t)
  const first = JSON.parse((await create(...some, '--external-id', 'crm/7', '--json')).stdout)
  t.match(first, { externalId: 'crm/7', existed: false, key: /^svc_live_/ })
  const again = await create(...some, '--external-id', 'crm/7')
  t.match(again, { code: 0, stdout: `${first.id} for Schools has the external id crm/7 already.` })
  const shown = await command('keys', 'show', 'external:crm/7', '--json')
  t.hasStrict(JSON.parse(shown.stdout), { id: first.id, lastUsedOn: null, usedToday: 0 })
  const set = await command('keys', 'set', 'external:crm/7', '--expires', '2099-12-31', '--json')
  t.hasStrict(JSON.parse(set.stdout), { id: first.id, expiresAt: '2099-12-31T18:00:00.000Z' })
  const { stdout } = await command('keys', 'list')
  t.match(stdout, /^id +external id +subscriber .* expires \(UTC\) +last used \(Asia\/Dhaka\)\n/)
  const other = await create('--subscriber', 'Other', '--tier', 'free', '--external-id', 'crm/7')
  const taken = `abohawa: external id "crm/7" belongs to ${first.id}, a key of another subscriber`
  t.match(other, { code: 1, stderr: taken })
})

t.test('a file with anything wrong is refused by line and column, and nothing is created', async t => {
  const { create, env, file, list } = setUp(t)
  await create(...some, '--external-id', 'taken')
  const cases = [
    ['', /line 1, subscriber: /],
    [`${head}\n`, /must have 1 to 100,000 keys, got 0/],
    ['subscriber,teir,external_id\nA,free,1\n', /line 1, teir: .*did you mean tier\?/],
    [
      `${head}\nA,free,1\nB,gold,2\n`,
      /line 3: tier must be one of free, starter, business, enterprise, .*got "gold"/,
    ],
    [
      `${head}\nA,free,1,0\nB,free,2,many\n`,
      /line 2: the limit must .*, got "0".*line 3: the limit .*, got "many"/,
    ],
    [`${head}\nA,free,1,,soon\n`, /line 2: expires must be never, a day .*, got "soon"/],
    [`${head}\nA,free,1,,2020-01-01\n`, /line 2: expires must be in the future, got "2020-01-01"/],
    [`${head}\nA,free,\n`, /line 2: the external id must be 1 to 100 characters .*, got ""/],
    [`${head}\nA,free,${'x'.repeat(101)}\n`, /line 2: the external id must be .*, got "x+…?"/],
    [`${head}\nA,free,a\u0007b\n`, /line 2: the external id must be .*, got "a.*b"/],
    [`${head}\nA,free,1\nB,free, 1\n`, /line 3: an earlier request has the external id " 1" too/],
    [`${head}\nA,free,taken\n`, /line 2: external id "taken" belongs to key_\w+, a key of another subscr/],
    [`${head}\n ,free,1\nA,free,"2\n`, /not CSV: a quotation mark opens a field and nothing closes it/],
    [`${head}\n\u001b[2J,free,1\n`, /line 2: the subscriber's name must /],
    [`${head}\nA,free,1,2,3d,x\n`, /line 2, the row: /],
  ] as const
  const mistakes = cases.map(([text, sentence], i): Mistake => {
    return [`keys create --from ${file(`bad-${i}.csv`, text)}`, 1, sentence]
  })
  await checkMistakes(t, mistakes, env)
  t.equal((await list()).length, 1)
})

const many = (count: number) =>
  `${head}\n${Array.from({ length: count }, (_, i) => `School ${i % 40},free,s-${i},,\n`).join('')}`

const ways: [way: 'SIGKILL' | 'SIGINT' | 'away', onRedis: boolean, how: string][] = [
  ['SIGKILL', false, 'killed on a file'],
  ['SIGINT', true, 'interrupted on Redis'],
  ['away', true, 'left alone by Redis'],
]
for (const [way, onRedis, how] of ways)
  t.test(
    `a run that is ${how} shows what it created, and is repeated to the same set, each once`,
    { skip: onRedis && withoutOwnRedis },
    async t => {
      const redis = onRedis ? await startRedis(t) : undefined
      const timeouts = { ...patientRedisEnv, ABOHAWA_REDIS__COMMAND_TIMEOUT: '5s' }
      const place = redis && { ...timeouts, ABOHAWA_REDIS__URL: redis.url }
      const { env, create, file, folder, list } = setUp(t, place)
      const count = 2_000
      const given = file('keys.csv', many(count))
      const [first, second] = [join(folder, '1.csv'), join(folder, '2.csv')]
      const args = ['keys', 'create', '--create-store', '--from', given, '--csv', '--out']
      const { child, said, closed } = spawnProgram(t, [product, ...args, first], { env: cleanEnv(env) })
      // A part is created once its lines are written: with the second part, the first is there.
      const isSome = () => existsSync(first) && readFileSync(first, 'utf8').split('\n').length > 60
      await until('some are created', isSome)
      if (way === 'away') redis?.signal('SIGSTOP')
      else child.kill(way)
      const code = await closed
      if (way === 'away') redis?.signal('SIGCONT')
      const shown = rows(readFileSync(first, 'utf8').replace(/[^\n]*$/, ''))
      t.ok(shown.length > 0 && shown.length < count, `${shown.length} of ${count}`)
      if (way !== 'SIGKILL') {
        t.equal(code, 1)
        const why = way === 'SIGINT' ? 'the command was interrupted' : 'abohawa: .*'
        t.match(said.stderr, new RegExp(`${why}; [\\d,]+ created, 0 existed of 2,000: the same command`))
      }
      // Not known is what became of the part that was under way. No key is in the store and not in the file.
      const unsure = way === 'SIGINT' ? 0 : 50
      const before = new Set<string>((await list()).map(({ id }: { id: string }) => id))
      t.strictSame(
        [...before].filter(id => !shown.some(row => row.id === id)),
        [],
      )
      t.ok(shown.length - before.size <= unsure, `${before.size} are in the store`)
      const unsureIds = shown.map(({ id }) => id ?? '').filter(id => !before.has(id))
      if (way === 'away')
        t.ok(
          unsureIds.slice(0, 20).every(id => said.stderr.includes(id)),
          'named',
        )

      t.match(await create('--from', given, '--csv', '--out', second), { code: 0 })
      const all: { id: string; externalId: string }[] = await list()
      t.strictSame([all.length, new Set(all.map(({ externalId }) => externalId)).size], [count, count])
      const repeated = rows(readFileSync(second, 'utf8'))
      t.equal(repeated.length, count)
      for (const { id, external_id } of shown.filter(({ id = '' }) => before.has(id)))
        t.equal(repeated.find(row => row.external_id === external_id)?.id, id)
      const withKey = new Set([...shown, ...repeated].filter(({ key }) => key).map(({ id }) => id))
      t.strictSame(
        all.filter(({ id }) => !withKey.has(id)),
        [],
        'each key was shown',
      )
    },
  )
