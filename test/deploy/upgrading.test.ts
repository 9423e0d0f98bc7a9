// What docs/upgrading.md says of the formats is what the product writes, and its commands take the options that it gives.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import t from 'tap'
import { systemClock } from '../../src/clock.ts'
import { openEmbeddedStore } from '../../src/stores/embedded/embedded-store.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { runCommand } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/upgrading.md'), 'utf8')
const [, file, redis] = /^\| the number that this version writes \| (\d+) \| (\d+) \|$/m.exec(page) ?? []

t.test('the page has the formats that this version writes, and the history to them', async t => {
  const path = join(t.testdir(), 'store.db')
  await openEmbeddedStore(path, systemClock).close()
  const db = new DatabaseSync(path)
  t.teardown(() => db.close())
  t.equal(Number(file), db.prepare('PRAGMA user_version').get()?.user_version)
  const [, history = ''] = /^\| Format of a file .*\n\| --- .*\n((?:\|.*\n)+)/m.exec(page) ?? []
  t.strictSame(
    [...history.matchAll(/^\| (\d+) /gm)].map(([, number]) => Number(number)),
    Array.from({ length: Number(file) + 1 }, (_, i) => i),
  )

  const { url, prefix } = await testRedis(t)
  const options = { url, prefix, connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 }
  const store = await openRedisStore(options, { redisAway: () => {}, redisBack: () => {} })
  await store.ensureSubscriber({ id: 'sub_1', name: 'Padma', createdAt: 1, revokedAt: null })
  await store.close()
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  t.equal(redis, await raw.get(`${prefix}format`))
})

t.test('the sentence of the page is the one of the product', async t => {
  const path = join(t.testdir(), 'store.db')
  const newer = new DatabaseSync(path)
  newer.exec(`PRAGMA user_version = ${Number(file) + 1}`)
  newer.close()
  const { stderr } = await runCommand(['keys', 'list'], { ABOHAWA_STORE__PATH: path })
  const [shown = ''] = /^abohawa: store\.path is .*$/m.exec(page) ?? []
  t.equal(shown.replace('/var/lib/abohawa/abohawa.db', path), stderr.trim())
})

t.test('the commands before an upgrade run, and the export is taken in by an empty store', async t => {
  const folder = t.testdir({ 'gateway.yaml': '{ provider: { baseUrl: "http://127.0.0.1:9" } }' })
  const at = (text: string) =>
    text
      .replace('/etc/abohawa/gateway.yaml', join(folder, 'gateway.yaml'))
      .replace('keys.ndjson', join(folder, 'keys.ndjson'))
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  const create = ['keys', 'create', '--create-store', '--subscriber', 'Padma', '--tier', 'free']
  t.equal((await runCommand(create, env)).code, 0)
  const commands = [...page.matchAll(/^ +bin\/abohawa (.*)$/gm)].map(([, text = '']) => at(text).split(' '))
  t.strictSame(
    commands.map(([first]) => first),
    ['config', 'doctor', 'store'],
  )
  for (const command of commands) {
    const { code, stdout, stderr } = await runCommand(command, {
      ...env,
      ABOHAWA_SERVER__PORT: '0',
      ABOHAWA_OPS__PORT: '0',
    })
    // No provider answers here, which is what the doctor says, and all that it finds.
    const failed = [...stdout.matchAll(/^fail +(.*)$/gm)].map(([, text = '']) => text)
    if (command[0] !== 'doctor') t.equal(code, 0, stderr)
    else t.match({ code, failed }, { code: 1, failed: [/^provider .* ECONNREFUSED 127\.0\.0\.1:9$/] })
    t.equal(failed.length, command[0] === 'doctor' ? 1 : 0)
  }
  const other = { ABOHAWA_STORE__PATH: join(folder, 'other.db') }
  const back = await runCommand(at(/`(store import [^`]+)`/.exec(page)?.[1] ?? '').split(' '), other)
  t.equal(back.code, 0, back.stderr)
  const keysIn = async (store: typeof other) => (await runCommand(['keys', 'list', '--json'], store)).stdout
  t.match(JSON.parse(await keysIn(other)), [{ subscriber: 'Padma' }])
  t.equal(await keysIn(other), await keysIn(env))
})
