// Without this, a backup beside traffic could miss counts, be readable by others, or replace a file.

import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { backUp } from '../../src/stores/sqlite/backup.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { openCallers } from '../scenarios/callers.ts'
import { createKey, processEnv, startProcess } from '../scenarios/set-up.ts'
import { runCommand } from '../support/process.ts'
import { until } from '../support/until.ts'

const copy = (path: string, file: string, ...more: string[]) =>
  runCommand(['store', 'backup', file, ...more], { ABOHAWA_STORE__PATH: path })

/** One row, or one value where the row has one. */
const read = (path: string, sql: string): unknown => {
  using db = new DatabaseSync(path)
  const values = Object.values(db.prepare(sql).get() ?? {})
  return values.length === 1 ? values[0] : values
}

const addWeather = (path: string, rows: number): void => {
  using db = new DatabaseSync(path)
  db.exec(`WITH RECURSIVE rows (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM rows WHERE i < ${rows})
    INSERT INTO bytes SELECT 'filling ' || i, randomblob(13000), 9e15 FROM rows`)
}

t.test('beside a gateway under load the copy has every count of an answer before it', async t => {
  const folder = t.testdir()
  const [path, file] = [join(folder, 'store.db'), join(folder, 'copy.db')]
  const env = processEnv('http://127.0.0.1:9', { ABOHAWA_STORE__PATH: path })
  const key = await createKey(env)
  // Some 40 MiB, so that there are many counts while it is copied.
  addWeather(path, 3_000)
  const gateway = await startProcess(t, env)
  const callers = await openCallers(t, gateway.urls.api ?? '', key, 8)
  let [sent, answered, isOver] = [0, 0, false]
  const load = callers.map(async caller => {
    while (!isOver) {
      sent += 1
      const { status } = await caller.send('/api/v1/locations?type=division')
      if (status !== 200) throw new Error(`${status} under load`)
      answered += 1
    }
  })
  await until('the load runs', () => answered > 100)
  const before = answered
  const { code, stdout, stderr } = await copy(path, file, '--json')
  const [atEnd, after] = [sent, answered]
  isOver = true
  await Promise.all(load)
  t.equal(code, 0, stderr)
  t.strictSame(JSON.parse(stdout), { file, subscribers: 1, keys: 1, usage: 1, store: path })
  const used = Number(read(file, 'SELECT sum(used) FROM usage'))
  t.ok(before <= used && used <= atEnd, `${before} answered before, ${used} in the copy, ${atEnd} sent`)
  t.ok(after > before, 'the gateway answered meanwhile')
  t.equal(read(file, 'SELECT count(*) FROM bytes'), 3_000)
  t.equal(read(file, 'PRAGMA journal_mode'), 'delete', 'it is one file')
  t.equal(statSync(file).mode & 0o777, 0o600)
  const others = readdirSync(folder).filter(name => !name.startsWith('store.db'))
  t.strictSame(others, ['copy.db'])
})

const filled = async (folder: string, used: number) => {
  const path = join(folder, 'store.db')
  const store = openEmbeddedStore(path, systemClock)
  await store.ensureSubscriber({ id: 'sub_1', name: 'Padma', createdAt: 1, revokedAt: null })
  await store.raiseUsed('key_1', '2026-11-26', used, 9e12)
  await store.close()
  return path
}

t.test('it is the store of one instant, and counts meanwhile do not start it anew', async t => {
  const folder = t.testdir({ 'copy.db': '' })
  const path = await filled(folder, 5)
  addWeather(path, 1_000)
  const store = openEmbeddedStore(path, systemClock)
  t.teardown(() => store.close())
  const steps: number[] = []
  const onStep = (copied: number) => {
    steps.push(copied)
    if (steps.length < 20) void store.raiseUsed('key_1', '2026-11-26', 5 + steps.length, 9e12)
  }
  await backUp(path, join(folder, 'copy.db'), onStep)
  t.strictSame(steps, [1_000, 2_000, 3_000])
  t.equal(read(join(folder, 'copy.db'), 'SELECT used FROM usage'), 5)
  t.equal(read(path, 'SELECT used FROM usage'), 8)
})

t.test('it replaces nothing unless told, and never the store; a refusal is one sentence', async t => {
  const folder = t.testdir({ 'text.db': 'no database', pile: {} })
  const path = await filled(folder, 5)
  const at = (name: string) => join(folder, name)
  writeFileSync(at('there'), 'precious', { mode: 0o644 })
  symlinkSync(path, at('link'))
  const refused = async (said: RegExp, file: string, store = path, ...more: string[]) => {
    const { code, stdout, stderr } = await copy(store, file, ...more)
    t.hasStrict({ code, stdout }, { code: 1, stdout: '' })
    t.match(stderr, said)
    t.equal(stderr.split('\n').length, 2, stderr)
  }
  await refused(/the backup is .*there, which exists; --force replaces it/, at('there'))
  for (const same of ['store.db', 'link', 'store.db-wal', 'store.db-shm'])
    await refused(/, which belongs to the store; choose another file/, at(same), path, '--force')
  await refused(/the backup is .*pile, which is not a regular file/, at('pile'), path, '--force')
  await refused(
    /the backup is .*none.x, which can't be written: .*none" is a folder that is missing/,
    at('none/x'),
  )
  await refused(/there is no store yet at .*none\.db/, at('new'), at('none.db'))
  await refused(/text\.db can't be backed up to .*new: file is not a database/, at('new'), at('text.db'))
  mkdirSync(at('other'))
  const damaged = await filled(at('other'), 1)
  using db = new DatabaseSync(damaged)
  db.enableDefensive(false)
  db.exec(`PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'bytes_by_expiry'`)
  await refused(/can't be backed up to .*new: the copy is damaged: .*Page \d+/, at('new'), damaged)
  const env = { ABOHAWA_REDIS__URL: 'redis://127.0.0.1:9' }
  const redis = await runCommand(['store', 'backup', at('new')], env)
  t.match(redis, {
    code: 1,
    stderr: /the store is redis:.* which Redis backs up itself .*`abohawa store export/,
  })
  const names = ['link', 'other', 'pile', 'store.db', 'text.db', 'there']
  t.strictSame(readdirSync(folder).sort(), names)

  t.equal((await copy(path, at('there'), '--force')).code, 0)
  t.equal(statSync(at('there')).mode & 0o777, 0o600)
  t.equal(read(at('there'), 'SELECT used FROM usage'), 5)
})
