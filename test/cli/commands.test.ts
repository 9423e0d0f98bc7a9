// Without this, a command could lose its example, its JSON, its exit code or its one-sentence error.

import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { version } from '../../src/common/version.ts'
import { runCommands } from '../support/printed.ts'
import { runCommand } from '../support/process.ts'

const root = join(import.meta.dirname, '..', '..')
const groups: Readonly<Record<string, readonly string[]>> = {
  keys: ['create', 'list', 'show', 'revoke', 'rotate', 'set', 'usage', 'why'],
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
  ...['serve', 'demo', 'provider', 'whatif', 'status', 'doctor', 'rehearse', 'replay'],
  ...Object.entries(groups).flatMap(([group, names]) => names.map(name => `${group} ${name}`)),
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
  t.strictSame(found.toSorted(), leaves.toSorted())
  t.ok(leaves.length <= 35, `${leaves.length} commands`)
})

t.test('every --help shows an example and the common options', async t => {
  const helps = await runCommands(leaves.map(command => `${command} --help`))
  for (const [i, command] of leaves.entries()) {
    const { stdout, ...ended } = helps[i] ?? {}
    t.strictSame(ended, { code: 0, stderr: '' }, command)
    t.match(stdout, `Example:\n  npm run -s abohawa -- ${command}`)
    for (const option of ['--config <file>', '--json']) t.match(stdout, option, command)
  }
})

t.test('--version prints the version of package.json, with the commit', async t => {
  const { version: number } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.ok(version === number || new RegExp(`^${RegExp.escape(number)}\\+[0-9a-f]{8}$`).test(version), version)
  const expected = { code: 0, stdout: `${version}\n`, stderr: '' }
  t.hasStrict(await runCommand(['--version']), expected)
  const nowhere = { NODE_COMPILE_CACHE: join(root, 'package.json', 'cache') }
  t.hasStrict(await runCommand(['--version'], nowhere), expected, 'also where nothing can be kept')
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
  const subscriber = 'Dhaka Tribune'
  const create = ['keys', 'create', '--subscriber', subscriber, '--tier']
  const issued = await json(...create, 'business', '--create-store')
  const facts = ['id', 'key', 'subscriber', 'tier', 'limit', 'externalId', 'expiresAt']
  const names = [...facts, 'restrictions', 'rates', 'store']
  t.strictSame(Object.keys(issued).toSorted(), names.toSorted())
  const given = { tier: 'business', limit: 10_000 }
  t.match(issued, { key: /^svc_live_[0-9A-Za-z]{38}$/, subscriber, ...given })

  t.hasStrict(await json('keys', 'show', issued.id), { id: issued.id, status: 'active', ...given })
  t.match(await json('keys', 'revoke', issued.id), { status: 'revoked', revokedAt: /Z$/ })
  t.hasStrict(await json('keys', 'revoke', issued.id), { status: 'revoked' })
  t.hasStrict(await json('keys', 'revoke', '--undo', issued.id), { status: 'active', revokedAt: null })
  t.hasStrict(await json('subscribers', 'revoke', subscriber), { status: 'revoked', keys: undefined })
  t.hasStrict(await json('keys', 'list'), [{ id: issued.id, status: 'subscriber revoked' }])
  const refused = await runCommand([...create, 'free'], env)
  t.match(refused, { code: 1, stderr: /^abohawa: subscriber "Dhaka Tribune" is revoked; .*\n$/ })
  const [{ id }] = await json('subscribers', 'list')
  t.hasStrict(await json('subscribers', 'revoke', '--undo', id), { status: 'active' })
  const days = [{ used: 0 }, { used: 0 }]
  t.match(await json('keys', 'usage', issued.id, '--days', '2'), { limit: 10_000, days })

  const people = await runCommand(['keys', 'list'], env)
  t.match(people.stdout, /^id +subscriber +tier +limit +status +created \(UTC\) +last used \(Asia\/Dhaka\)\n/)
  const shownOnce = [
    people.stdout,
    JSON.stringify(await json('keys', 'show', issued.id)),
    readFileSync(env.ABOHAWA_STORE__PATH, 'latin1'),
  ]
  for (const text of shownOnce) t.notOk(text.includes(issued.key), 'the key itself is kept nowhere')
})

t.test('config files are those of --config, or of ABOHAWA_CONFIG_FILE; what comes later wins', async t => {
  const folder = t.testdir({
    a: 'server: { port: 1 }\n',
    b: 'cache: { freshFor: 2h }\n',
    'bad.yaml': 'server:\n  prot: 1\n',
  })
  const [a, b, bad] = ['a', 'b', 'bad.yaml'].map(name => join(folder, name)) as [string, string, string]
  const env = { ABOHAWA_CONFIG_FILE: `${a}:${b}:` }
  const effective = async (given: object, ...args: string[]) => {
    const { stdout } = await runCommand(['config', 'print', '--json', ...args], { ...env, ...given })
    const { server, cache, log } = JSON.parse(stdout)
    return [server.port, cache.freshFor, log.level]
  }
  t.strictSame(await effective({}), [1, '2h', 'info'])
  const over = { ABOHAWA_SERVER__PORT: '2', ABOHAWA_LOG__LEVEL: 'debug' }
  t.strictSame(await effective(over, '-c', a), [2, '1h', 'debug'])
  const check = (...args: string[]) => runCommand(['config', 'check', ...args], { ABOHAWA_CONFIG_FILE: bad })
  t.hasStrict(await check(a), { code: 0, stdout: 'The configuration is right.\n' })
  const unknown = /bad\.yaml:2:3: .*server\.prot is not a known setting; did you mean server\.port\?/
  for (const args of [[], ['--config', bad]]) t.match(await check(...args), { code: 1, stderr: unknown })
})

t.test('config check takes files, and looks at what they name unless told otherwise', async t => {
  const folder = t.testdir({
    'gateway.yaml':
      'server:\n  tls: { cert: nowhere.crt, key: nowhere.key }\ncatalogue:\n  path: nowhere.json\n',
    'later.yaml': 'store:\n  path: /dev/null/a.db\nlog:\n  file: nowhere/a.log\n',
  })
  const files = [join(folder, 'gateway.yaml'), join(folder, 'later.yaml')]
  t.match(await runCommand(['config', 'check', '--no-files', ...files]), { code: 0 })
  const { code, stdout, stderr } = await runCommand(['config', 'check', '--json', ...files])
  t.equal(code, 1)
  const { ok, faults } = JSON.parse(stdout)
  t.equal(ok, false)
  const [cert, store] = [/is nowhere\.crt, which can't be read/, /is \/dev\/null\/a\.db, which can't be writ/]
  t.match(faults, [
    { file: files[0], line: 2, column: 16, path: 'server.tls.cert', sentence: cert },
    { file: files[1], line: 2, path: 'store.path', sentence: store },
    {
      file: files[1],
      line: 4,
      path: 'log.file',
      sentence: /is nowhere\/a\.log, which can't be written: ENOENT/,
    },
    { file: files[0], line: 4, path: 'catalogue.path', sentence: /catalogue\.path: .*nowhere\.json/ },
  ])
  t.equal(stderr.split('\n').length, 5, 'a line for each')
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
  const paths = ['cache.freshFor', 'provider.apiKey', 'server.port', 'server.tls.cert', 'server.tls.key']
  const shown = all.map(({ path }) => path).toSorted()
  t.strictSame(shown, paths, 'what is given as it is anyhow does not differ')
  const ofFile = { value: '2h', default: '1h', origin: `${file}:2`, effect: 'live', except: null }
  t.hasStrict(of('cache.freshFor'), ofFile)
  const ofVariable = { value: 81, default: 8080, origin: 'ABOHAWA_SERVER__PORT', effect: 'restart' }
  t.hasStrict(of('server.port'), { ...ofVariable, except: null })
  t.notMatch(stdout, 'hunter2')
  const { stdout: text } = await runCommand(['config', 'print', '--changed', '--config', file], env)
  t.match(text, /^cache\.freshFor +2h +1h +\S+gateway\.yaml:2 +live$/m)
  t.match(text, /^server\.tls\.cert +a\.crt +null +.* live, except from null or to null, /m)
  const rates = t.testdir({ 'rates.yaml': 'quota:\n  rates:\n    free: { perSecond: 2, burst: 3 }\n' })
  const limited = await runCommand(['config', 'print', '--changed', '--config', join(rates, 'rates.yaml')])
  t.match(limited.stdout, /^quota\.rates\.free +\{.*\} +– +\S+rates\.yaml:3 +live$/m, 'a map in a map')
  const none = await runCommand(['config', 'print', '--changed'])
  t.hasStrict(none, { code: 0, stdout: 'Nothing differs from the defaults.\n' })
})

t.test('config print --why explains a setting or a section', async t => {
  const why = (path: string, env = {}) => runCommand(['config', 'print', '--why', path], env)
  const explained = await why('cache.freshFor', { ABOHAWA_CACHE__FRESH_FOR: '3h' })
  t.match(explained.stdout, /^cache\.freshFor\n {2}Time for which weather is fresh by age/)
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
  const meant = 'cache.freshfor is not a known setting; did you mean cache.freshFor?'
  t.hasStrict(await why('cache.freshfor'), { code: 1, stderr: `abohawa: ${meant}\n` })
  t.hasStrict(await why('nosuch'), { code: 1, stderr: 'abohawa: nosuch is not a known setting\n' })
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
  })
  const out = join(folder, 'locations.json')
  const env = { ABOHAWA_CATALOGUE__PATH: out }
  const build = (table: string, ...more: string[]) =>
    runCommand(['catalogue', 'build', '--from', join(folder, table), '--out', out, ...more])
  const built = await build('places.csv')
  t.match(built, { code: 0, stdout: /2 places \(1 division, 1 district, 0 upazilas, 0 unions\)/ })
  const changes = ['--changes', join(folder, 'changes.csv')]
  const withOthers = (aliases: string) => build('places.csv', '--aliases', join(folder, aliases), ...changes)
  t.match(await withOthers('aliases.csv'), { code: 0, stdout: /0 unions\), 1 alias, 1 former code\.$/m })
  t.match(await withOthers('bad-aliases.csv'), {
    code: 1,
    stdout: 'aliases, row 3, bbs_code: must be the code of a place in the table, got "3027"\n',
    stderr: /has 1 fault/,
  })
  t.match(await runCommand(['catalogue', 'check'], env), { code: 0, stdout: /no fault/ })
  const { stdout } = await runCommand(['catalogue', 'check', out, '--json'])
  t.match(JSON.parse(stdout), { counts: { division: 1, district: 1 }, faults: [] })
  const publish = (...args: string[]) => runCommand(['catalogue', 'publish', ...args], env)
  const hidden = 'Dhaka (district 3026) is now unpublished.\n'
  t.hasStrict(await publish('--undo', '3026'), { code: 0, stdout: hidden })
  const shown = JSON.parse((await publish('3026', '--json')).stdout)
  t.hasStrict(shown, { id: '3026', published: true, changed: true })
  t.match(await publish('3026'), { code: 0, stdout: /was already published/ })
  t.equal((await publish('9999')).code, 1)
})
