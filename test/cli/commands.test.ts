// The command line in general: help with an example, JSON, exit codes, one sentence for every error.

import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { version } from '../../src/common/version.ts'
import { runCommands } from '../support/printed.ts'
import { runCommand } from '../support/process.ts'
import { productCounts } from '../support/product-places.ts'

const root = join(import.meta.dirname, '..', '..')
const groups: Readonly<Record<string, readonly string[]>> = {
  keys: ['create', 'list', 'show', 'revoke', 'rotate', 'set', 'usage'],
  subscribers: ['list', 'revoke'],
  store: ['backup', 'export', 'import', 'copy'],
  catalogue: ['build', 'check', 'publish'],
  cache: ['show', 'purge', 'warm'],
  budget: ['reopen'],
  config: ['check', 'print'],
  traffic: ['import', 'generate', 'stats'],
  replay: ['report'],
}
const leaves = [
  ...['serve', 'demo', 'provider', 'whatif', 'status', 'doctor', 'rehearse', 'replay', 'saturate'].map(
    name => [name],
  ),
  ...Object.entries(groups).flatMap(([group, names]) => names.map(name => [group, name])),
]

/** The commands that a help lists. */
const listedIn = (help: string): string[] => {
  const [list = ''] = help.split('\nCommands:\n')[1]?.split('\n\n') ?? []
  return [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name).filter(name => name !== 'help')
}

t.test('there are no other commands than these few', async t => {
  const [whole] = await runCommands([['--help']])
  const top = listedIn(whole?.stdout ?? '')
  const below = await runCommands(top.map(name => [name, '--help']))
  const found = top.flatMap((name, i) => {
    const help = below[i]?.stdout ?? ''
    // What takes nothing but a command is a group.
    const isGroup = help.split('\n')[0]?.endsWith('[command]')
    return [...(isGroup ? [] : [name]), ...listedIn(help).map(each => `${name} ${each}`)]
  })
  t.strictSame(found.toSorted(), leaves.map(words => words.join(' ')).toSorted())
  t.ok(leaves.length <= 35, `${leaves.length} commands`)
})

// In one process each list: a start takes half a second on a busy machine.
const helps = await runCommands(leaves.map(command => [...command, '--help']))
for (const [i, command] of leaves.entries())
  t.test(`${command.join(' ')} --help shows an example and the common options`, async t => {
    const { code, stdout, stderr } = helps[i] ?? {}
    t.equal(code, 0)
    t.equal(stderr, '')
    t.match(stdout, `Example:\n  npm run -s abohawa -- ${command.join(' ')}`)
    t.match(stdout, '--config <file>')
    t.match(stdout, '--json')
  })

t.test('--version prints the version of package.json, with the commit', async t => {
  const { version: number } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.ok(version === number || new RegExp(`^${RegExp.escape(number)}\\+[0-9a-f]{8}$`).test(version), version)
  const expected = { code: 0, stdout: `${version}\n`, stderr: '' }
  t.match(await runCommand(['--version']), expected)
  t.match(
    await runCommand(['--version'], { NODE_COMPILE_CACHE: join(root, 'package.json', 'cache') }),
    expected,
    'and where nothing can be kept for the next start too',
  )
})

t.test('the folder of compiled code is made for its owner alone, because what lies there is run', async t => {
  const cache = join(t.testdir(), 'new', 'cache')
  const umask = process.umask(0)
  const { code } = await runCommand(['--version'], { NODE_COMPILE_CACHE: cache })
  process.umask(umask)
  t.equal(code, 0)
  t.equal(statSync(cache).mode & 0o777, 0o700)
})

t.test('a group of commands without one shows what there is', async t => {
  for (const args of [[], ['keys'], ['catalogue']]) {
    const { code, stderr } = await runCommand(args)
    t.equal(code, 2)
    t.match(stderr, /Usage: abohawa/)
  }
})

t.test('the life of a key', async t => {
  const env = { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], env)
    t.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }
  const issued = await json(
    'keys',
    'create',
    '--create-store',
    '--subscriber',
    'Dhaka Tribune',
    '--tier',
    'business',
  )
  t.strictSame(Object.keys(issued), [
    'id',
    'key',
    'subscriber',
    'tier',
    'limit',
    'externalId',
    'expiresAt',
    'store',
  ])
  t.match(issued, {
    key: /^svc_live_[0-9A-Za-z]{38}$/,
    subscriber: 'Dhaka Tribune',
    tier: 'business',
    limit: 10_000,
  })

  t.match(await json('keys', 'show', issued.id), {
    id: issued.id,
    status: 'active',
    tier: 'business',
    limit: 10_000,
  })
  t.match(await json('keys', 'revoke', issued.id), { status: 'revoked', revokedAt: /Z$/ })
  t.match(await json('keys', 'revoke', issued.id), { status: 'revoked' })
  t.match(await json('keys', 'revoke', '--undo', issued.id), { status: 'active', revokedAt: null })
  t.match(await json('subscribers', 'revoke', 'Dhaka Tribune'), { status: 'revoked', keys: undefined })
  t.match(await json('keys', 'list'), [{ id: issued.id, status: 'subscriber revoked' }])
  const refused = await runCommand(['keys', 'create', '--subscriber', 'Dhaka Tribune', '--tier', 'free'], env)
  t.equal(refused.code, 1)
  t.match(refused.stderr, /^abohawa: subscriber "Dhaka Tribune" is revoked; .*\n$/)
  const [subscriber] = await json('subscribers', 'list')
  t.match(await json('subscribers', 'revoke', '--undo', subscriber.id), { status: 'active' })
  t.match(await json('keys', 'usage', issued.id, '--days', '2'), {
    limit: 10_000,
    days: [{ used: 0 }, { used: 0 }],
  })

  const people = await runCommand(['keys', 'list'], env)
  t.match(people.stdout, /^id +subscriber +tier +limit +status +created \(UTC\) +last used\n/)
  const shownOnce = [
    people.stdout,
    JSON.stringify(await json('keys', 'show', issued.id)),
    readFileSync(env.ABOHAWA_STORE__PATH, 'latin1'),
  ]
  for (const text of shownOnce) t.notOk(text.includes(issued.key), 'the key itself is kept nowhere')
})

t.test('ABOHAWA_CONFIG_FILE names the config files of every command, and --config others', async t => {
  const folder = t.testdir({ a: 'server: { port: 1 }\n', b: 'cache: { freshFor: 2h }\n' })
  const env = { ABOHAWA_CONFIG_FILE: `${join(folder, 'a')}:${join(folder, 'b')}` }
  const effective = async (...args: string[]) => {
    const { server, cache } = JSON.parse(
      (await runCommand(['config', 'print', '--json', ...args], env)).stdout,
    )
    return [server.port, cache.freshFor]
  }
  t.strictSame(await effective(), [1, '2h'])
  t.strictSame(await effective('-c', join(folder, 'a')), [1, '1h'])
  const bad = join(folder, 'bad')
  writeFileSync(bad, 'server: { port: x }\n')
  t.equal((await runCommand(['config', 'check', join(folder, 'a')], { ABOHAWA_CONFIG_FILE: bad })).code, 0)
  t.equal((await runCommand(['config', 'check'], { ABOHAWA_CONFIG_FILE: bad })).code, 1)
})

t.test('the configuration is checked and printed, later files and the environment win', async t => {
  const folder = t.testdir({
    'a.yaml': 'server: { port: 1111 }\ncache: { freshFor: 2h }\n',
    'b.yaml': 'server: { port: 2222 }\n',
    'bad.yaml': 'server:\n  prot: 1\n',
  })
  const files = ['--config', join(folder, 'a.yaml'), '--config', join(folder, 'b.yaml')]
  const printed = JSON.parse(
    (await runCommand(['config', 'print', ...files, '--json'], { ABOHAWA_LOG__LEVEL: 'debug' })).stdout,
  )
  t.match(printed, { server: { port: 2222 }, cache: { freshFor: '2h' }, log: { level: 'debug' } })
  t.match(await runCommand(['config', 'check', ...files]), {
    code: 0,
    stdout: 'The configuration is right.\n',
  })
  const bad = await runCommand(['config', 'check', '--config', join(folder, 'bad.yaml')])
  t.equal(bad.code, 1)
  t.match(bad.stderr, /bad\.yaml:2:3: server\.prot is not a known setting; did you mean server\.port\?/)
  const badJson = await runCommand(['config', 'check', '--json', '--config', join(folder, 'bad.yaml')])
  t.equal(badJson.code, 1)
  t.match(JSON.parse(badJson.stdout), {
    ok: false,
    faults: [
      {
        file: join(folder, 'bad.yaml'),
        line: 2,
        column: 3,
        path: 'server.prot',
        sentence: /server\.prot is not a known setting/,
      },
    ],
  })
})

t.test('config check takes files, and looks at what they name unless told otherwise', async t => {
  const folder = t.testdir({
    'gateway.yaml':
      'server:\n  tls: { cert: nowhere.crt, key: nowhere.key }\ncatalogue:\n  path: nowhere.json\n',
    'later.yaml': 'store:\n  path: /dev/null/a.db\n',
  })
  const files = [join(folder, 'gateway.yaml'), join(folder, 'later.yaml')]
  t.match(await runCommand(['config', 'check', '--no-files', ...files]), { code: 0 })
  const { code, stdout, stderr } = await runCommand(['config', 'check', '--json', ...files])
  t.equal(code, 1)
  const { faults } = JSON.parse(stdout)
  t.match(faults, [
    {
      file: files[0],
      line: 2,
      path: 'server.tls.cert',
      sentence: /server\.tls\.cert is nowhere\.crt, which can't be read/,
    },
    {
      file: files[1],
      line: 2,
      path: 'store.path',
      sentence: /store\.path is \/dev\/null\/a\.db, which can't be written/,
    },
    { file: files[0], line: 4, path: 'catalogue.path', sentence: /catalogue\.path: .*nowhere\.json/ },
  ])
  t.equal(stderr.split('\n').length, 4, 'a line for each')
})

t.test('config print --changed says what differs from the defaults, and where that was given', async t => {
  const file = join(t.testdir({ 'gateway.yaml': 'cache:\n  freshFor: 2h\n' }), 'gateway.yaml')
  const env = {
    ABOHAWA_SERVER__PORT: '81',
    ABOHAWA_LOG__LEVEL: 'info',
    ABOHAWA_PROVIDER__API_KEY: 'hunter2',
    ABOHAWA_SERVER__TLS__CERT: 'a.crt',
    ABOHAWA_SERVER__TLS__KEY: 'a.key',
  }
  const { stdout } = await runCommand(['config', 'print', '--changed', '--json', '--config', file], env)
  const all = JSON.parse(stdout) as { path: string }[]
  const of = (path: string) => all.find(each => each.path === path)
  t.strictSame(
    all.map(({ path }) => path).toSorted(),
    ['cache.freshFor', 'provider.apiKey', 'server.port', 'server.tls.cert', 'server.tls.key'],
    'what is given as it is anyhow does not differ',
  )
  t.match(of('cache.freshFor'), {
    value: '2h',
    default: '1h',
    origin: `${file}:2`,
    effect: 'live',
    except: null,
  })
  t.match(of('server.port'), {
    value: 81,
    default: 8080,
    origin: 'ABOHAWA_SERVER__PORT',
    effect: 'restart',
    except: null,
  })
  t.notMatch(stdout, 'hunter2')
  const { stdout: text } = await runCommand(['config', 'print', '--changed', '--config', file], env)
  t.match(text, /^cache\.freshFor +2h +1h +\S+gateway\.yaml:2 +live$/m)
  t.match(text, /^server\.tls\.cert +a\.crt +null +.* live, except from null or to null, /m)
  t.match(await runCommand(['config', 'print', '--changed']), {
    code: 0,
    stdout: 'Nothing differs from the defaults.\n',
  })
})

t.test('config print --why explains a setting or a section', async t => {
  const explained = await runCommand(['config', 'print', '--why', 'cache.freshFor'], {
    ABOHAWA_CACHE__FRESH_FOR: '3h',
  })
  t.match(explained.stdout, /^cache\.freshFor\n {2}Duration for which weather counts as fresh/)
  for (const line of [
    /^ {2}allowed +a duration from 100ms to 48h/m,
    /^ {2}default +1h$/m,
    /^ {2}value +3h$/m,
    /^ {2}from +ABOHAWA_CACHE__FRESH_FOR$/m,
    /^ {2}variable +ABOHAWA_CACHE__FRESH_FOR$/m,
    /^ {2}a change +live/m,
  ])
    t.match(explained.stdout, line)
  const section = JSON.parse((await runCommand(['config', 'print', '--why', 'server.tls', '--json'])).stdout)
  t.equal(section.length, 4)
  t.match(section[0], { path: /^server\.tls\./, variable: /^ABOHAWA_SERVER__TLS__/, allowed: /./, text: /./ })
  t.match(await runCommand(['config', 'print', '--why', 'cache.freshfor']), {
    code: 1,
    stderr: 'abohawa: cache.freshfor is not a known setting; did you mean cache.freshFor?\n',
  })
  t.match(await runCommand(['config', 'print', '--why', 'nosuch']), {
    code: 1,
    stderr: 'abohawa: nosuch is not a known setting\n',
  })
})

t.test('a catalogue is built, checked, hidden and shown', async t => {
  const csv =
    'level,bbs_code,parent_bbs_code,name_en,name_bn,slug_en,latitude,longitude,area_sq_km,population,population_basis,website,coordinates_basis,name_bn_basis\n' +
    'division,30,,Dhaka,ঢাকা,dhaka,23.7115,90.4111,20382.03,36433505,census-2011,,seat,list\n' +
    'district,3026,30,Dhaka,ঢাকা,dhaka,23.7115,90.4111,1463.6,12043977,census-2011,https://dhaka.gov.bd,seat,list\n'
  const aliases = 'bbs_code,language,alias,kind\n3026,en,Dacca,former-official\n'
  const folder = t.testdir({
    'places.csv': csv,
    'aliases.csv': aliases,
    'bad-aliases.csv': `${aliases}3027,en,Daca,common\n`,
    'changes.csv': 'date,kind,level,old_code,new_code,in_table\n2020,new-code,district,3099,3026,yes\n',
    'bad.csv': csv.replace('23.7115', '53.7115').replace(',3026,30,', ',3026,31,'),
  })
  const out = join(folder, 'locations.json')
  const env = { ABOHAWA_CATALOGUE__PATH: out }
  const built = await runCommand(['catalogue', 'build', '--from', join(folder, 'places.csv'), '--out', out])
  t.match(built, { code: 0, stdout: /2 places \(1 division, 1 district, 0 upazilas, 0 unions\)/ })
  const withOthers = (aliases: string) =>
    runCommand([
      ...['catalogue', 'build', '--from', join(folder, 'places.csv'), '--out', out],
      ...['--aliases', join(folder, aliases), '--changes', join(folder, 'changes.csv')],
    ])
  t.match(await withOthers('aliases.csv'), { code: 0, stdout: /0 unions\), 1 alias, 1 former code\.$/m })
  t.match(JSON.parse(readFileSync(out, 'utf8')).locations[1], {
    aliases: ['Dacca'],
    former_ids: [{ id: '3099', until: '2020' }],
  })
  const before = readFileSync(out)
  t.match(await withOthers('bad-aliases.csv'), {
    code: 1,
    stdout: 'aliases, row 3, bbs_code: given "3027"; allowed is the code of a place in the table\n',
    stderr: /has 1 fault/,
  })
  t.strictSame(readFileSync(out), before, 'nothing was written')
  const refused = await runCommand(
    ['catalogue', 'build', '--from', join(folder, 'bad.csv'), '--out', out],
    env,
  )
  t.equal(refused.code, 1)
  t.match(refused.stdout, /row 2, latitude: /)
  t.match(refused.stdout, /row 3, parent_bbs_code: /)
  t.strictSame(readFileSync(out), before, 'nothing was written')
  t.match(await runCommand(['catalogue', 'check'], env), { code: 0, stdout: /no fault/ })
  t.match(await runCommand(['catalogue', 'publish', '--undo', '3026'], env), {
    code: 0,
    stdout: 'Dhaka (district 3026) is now unpublished.\n',
  })
  t.match(JSON.parse((await runCommand(['catalogue', 'publish', '3026', '--json'], env)).stdout), {
    id: '3026',
    published: true,
    changed: true,
  })
  t.match(await runCommand(['catalogue', 'publish', '3026'], env), {
    code: 0,
    stdout: /was already published/,
  })
  t.equal((await runCommand(['catalogue', 'publish', '9999'], env)).code, 1)
})

t.test('the catalogue of the product has no fault', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(join(root, 'locations.json'), path)
  t.match(JSON.parse((await runCommand(['catalogue', 'check', path, '--json'])).stdout), {
    counts: productCounts,
    faults: [],
  })
})
