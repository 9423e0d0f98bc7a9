// Without it other users of the machine could read the subscribers in the store's files unnoticed.

import { chmodSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { startGateway } from '../support/start-gateway.ts'

const providerUrl = 'http://127.0.0.1:9'
const quiet = { redisAway: () => {}, redisBack: () => {} }
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
const modesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map(name => [name, modeOf(join(folder, name))]))
const withUmask = <Result>(umask: number, act: () => Result): Result => {
  const before = process.umask(umask)
  try {
    return act()
  } finally {
    process.umask(before)
  }
}
const open = async (path: string, exposed: string[] = []) => {
  const redis = { url: null, prefix: 'x:', connectTimeoutMs: 1, commandTimeoutMs: 1 }
  const observer = { ...quiet, storeExposed: (path: string) => exposed.push(path) }
  const store = await openStore({ redis, store: { path } }, systemClock, observer)
  await store.writeBytes('a', Buffer.from('b'), Date.now() + 1e6)
  return store
}

t.test('new files are readable for their owner alone, whatever the umask', async t => {
  for (const umask of [0o000, 0o022, 0o077]) {
    const folder = join(t.testdir(), `umask-${umask}`)
    const store = await withUmask(umask, () => open(join(folder, 'store.db')))
    t.strictSame(Object.entries(modesIn(folder)).flat(), [
      ...['store.db', '600', 'store.db-shm', '600', 'store.db-wal', '600'],
    ])
    t.equal(modeOf(folder), '700', 'a folder that is made for it too')
    await store.close()
  }
  const folder = t.testdir()
  symlinkSync(join(folder, 'target.db'), join(folder, 'store.db'))
  await (await withUmask(0, () => open(join(folder, 'store.db')))).close()
  t.equal(modeOf(join(folder, 'target.db')), '600', 'what a link names too')
})

t.test('a store that others can read keeps its mode, and its gateway logs that once', async t => {
  const folder = t.testdir()
  const path = join(folder, 'store.db')
  await (await open(path)).close()
  const exposed: string[] = []
  for (const mode of [0o600, 0o660, 0o644, 0o602]) {
    chmodSync(path, mode)
    exposed.length = 0
    await (await open(path, exposed)).close()
    t.strictSame(exposed, (mode & 0o7) === 0 ? [] : [path], mode.toString(8))
    t.equal(statSync(path).mode & 0o777, mode, 'left as it is')
  }

  chmodSync(path, 0o644)
  const gateway = await startGateway(t, { providerUrl, env: { ABOHAWA_STORE__PATH: path } })
  const lines = gateway.logged.filter(({ msg }) => msg === 'store file readable by other users')
  t.match(lines, [{ level: /^(40|warn)$/, path, next: /chmod 600/ }])
  t.equal(lines.length, 1)
  t.equal((await gateway.get('/locations?type=division')).status, 200)
})

t.test('a write-ahead log that others can read is reported too', async t => {
  const folder = t.testdir()
  const path = join(folder, 'store.db')
  await (await open(path)).close()
  // A killed gateway leaves it behind.
  chmodSync(path, 0o644)
  const killed = new DatabaseSync(path)
  killed.exec("INSERT OR REPLACE INTO bytes VALUES ('c', x'00', 1)")
  chmodSync(path, 0o600)
  t.equal(modeOf(`${path}-wal`), '644')
  const exposed: string[] = []
  await (await open(path, exposed)).close()
  t.strictSame(exposed, [`${path}-wal`])
  killed.close()
})
