// Without it, a gateway could go on counting into a store file that was moved, and say nothing.

import { copyFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

for (const [what, file, change] of [
  ['moved away', 'store.db', () => {}],
  ['replaced by a copy', 'store.db', (was: string, now: string) => copyFileSync(now, was)],
  ['without its log', 'store.db-wal', () => {}],
  // Looking at it fails with another reason than that it is not there.
  ['replaced by a link to itself', 'store.db', (was: string) => symlinkSync(was, was)],
] as const)
  t.test(`a store that is ${what} is told in /readyz and the log, until it is back`, async t => {
    const path = join(t.testdir(), 'store.db')
    const gateway = await startGateway(t, {
      providerUrl: 'http://127.0.0.1:1',
      env: { ABOHAWA_STORE__PATH: path },
    })
    const store = async () => (await sendRequest(`${gateway.opsUrl}/readyz`)).body.detail.store
    t.equal(await store(), 'embedded')
    const at = join(path, '..', file)
    renameSync(at, `${at}.away`)
    change(at, `${at}.away`)
    t.equal(await store(), `embedded, ${at} is not the file that is open: it was moved, removed or replaced`)
    const lines = () => gateway.logged.filter(({ msg }) => /^store file /.test(String(msg)))
    t.hasStrict(lines(), [
      { level: 'error', reason: `${at} is not the file that is open: it was moved, removed or replaced` },
    ])
    rmSync(at, { force: true })
    renameSync(`${at}.away`, at)
    await until('the log says that it is back', () => lines().length === 2)
    t.hasStrict(lines().at(-1), { level: 'info', msg: 'store file is back' })
    t.equal(await store(), 'embedded')
  })
