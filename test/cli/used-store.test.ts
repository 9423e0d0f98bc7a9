// Without this, a command in the wrong folder could make an empty store and write keys into it.

import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand, startCommand } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'

const ports = { ABOHAWA_SERVER__PORT: '0', ABOHAWA_OPS__PORT: '0' }
const create = ['keys', 'create', '--subscriber', 'Padma', '--tier', 'free']
const commands = [
  create,
  ['keys', 'list'],
  ['keys', 'show', 'key_1'],
  ['keys', 'revoke', 'key_1'],
  ['subscribers', 'list'],
  ['store', 'backup', 'copy.db'],
  ['store', 'export'],
  ['store', 'import', 'keys.ndjson'],
  ['store', 'copy', '--to', 'other.db'],
  ['budget', 'reopen'],
  ['cache', 'purge', 'all'],
]

t.test('in a folder where no gateway ran, commands make nothing and say what to do', async t => {
  const folder = t.testdir()
  const path = join(folder, 'data', 'store.db')
  const env = { ABOHAWA_STORE__PATH: path, ABOHAWA_OPS__PORT: '1' }
  const refused = (args: readonly string[]) =>
    runCommand(args, env).then(({ code, stdout, stderr }) => {
      t.hasStrict({ code, stdout }, { code: 1, stdout: '' }, args.join(' '))
      t.match(stderr, `abohawa: there is no store yet at ${path}; `)
      const make = args[1] === 'import' ? 'store import' : 'keys create'
      t.match(stderr, new RegExp(`--config.*create the store with \`abohawa ${make} --create-store\`\n$`))
    })
  await Promise.all(commands.map(refused))
  t.strictSame(readdirSync(folder), [], 'not even the folder')
  await refused(['cache', 'show', 'district/3026'])

  const empty = join(folder, 'empty.db')
  writeFileSync(empty, '')
  const { code, stderr } = await runCommand(create, { ABOHAWA_STORE__PATH: empty })
  t.match({ code, stderr }, { code: 1, stderr: `no store yet at ${empty}` }, 'an empty file is none either')
})

t.test('a store is made when the command says so, and from then on it is there', async t => {
  const path = join(t.testdir(), 'data', 'store.db')
  const env = { ABOHAWA_STORE__PATH: path }
  const { code, stdout, stderr } = await runCommand([...create, '--create-store', '--json'], env)
  t.hasStrict({ code, stderr }, { code: 0, stderr: `Store: ${path}\n` })
  const issued = JSON.parse(stdout)
  t.equal(issued.store, path)
  t.ok(existsSync(path))
  t.match(await runCommand(create, env), { code: 0 })
  const list = await runCommand(['keys', 'list', '--json'], env)
  t.hasStrict(list, { code: 0, stderr: `Store: ${path}\n` })
  t.equal(JSON.parse(list.stdout).length, 2, 'a list stays a list')
  t.equal(JSON.parse((await runCommand(['keys', 'show', issued.id, '--json'], env)).stdout).store, path)
  const said = `abohawa: there is no key "key_9"; \`abohawa keys list\` shows them all (store: ${path})\n`
  t.hasStrict(await runCommand(['keys', 'show', 'key_9'], env), { code: 1, stderr: said })
})

t.test('beside a gateway that has started, commands use its store', async t => {
  const path = join(t.testdir(), 'store.db')
  const env = { ...ports, ABOHAWA_STORE__PATH: path, ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9' }
  await startCommand(t, ['serve'], ['api', 'ops'], env)
  t.match(await runCommand(['keys', 'list'], env), { code: 0, stdout: `There is no key yet in ${path}.` })
  t.hasStrict(await runCommand(create, env), { code: 0, stderr: `Store: ${path}\n` })
})

t.test('on Redis too: a prefix that no gateway has used is refused', async t => {
  const { url, prefix, env } = await testRedis(t)
  const name = `${url.replace(/\/$/, '')} (prefix ${prefix})`
  const refused = await runCommand(create, env)
  t.match(refused, { code: 1, stdout: '', stderr: `there is no store yet at ${name}` })
  t.hasStrict(await runCommand([...create, '--create-store'], env), { code: 0, stderr: `Store: ${name}\n` })
  t.match(await runCommand(create, env), { code: 0 })
})
