// Without this, `serve` could depend on its folder, or ignore a signal to stop or reload.

import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bareEnv, cleanEnv, product, runCommand, spawnProgram, startProgram } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const line = [product, 'serve']
const serve = (t: Test, env: Record<string, string> = {}, args: readonly string[] = [], cwd = t.testdir()) =>
  startProgram(t, [...line, ...args], ['api'], { cwd, env: cleanEnv({ ...bareEnv, ...env }) })

t.test('it starts in an empty folder, with the places that come with the product', async t => {
  const { child, urls, said, exited } = await serve(t, { ABOHAWA_CATALOGUE__PATH: '' })
  const ready = await fetch(`${urls.ops}/readyz`)
  t.equal(ready.status, 200)
  t.match(await ready.text(), /[\d,]{4,} places/)

  await t.test('SIGUSR1 opens no debugger', async t => {
    child.kill('SIGUSR1')
    // The signal was sent before this request, so it has been handled.
    for (let i = 0; i < 20; i++) t.equal((await fetch(`${urls.ops}/livez`)).status, 200)
    t.notMatch(said.stderr, 'Debugger')
  })

  await t.test('SIGQUIT ends it gracefully', async t => {
    child.kill('SIGQUIT')
    t.equal(await exited, 0)
  })
})

t.test('a missing file of places is named with its setting and its full path', async t => {
  const folder = t.testdir()
  const env = cleanEnv({ ...bareEnv, ABOHAWA_CATALOGUE__PATH: 'nowhere.json' })
  const { said, closed } = spawnProgram(t, line, { cwd: folder, env })
  t.equal(await closed, 1)
  t.match(said.stderr, `abohawa: catalogue.path: ${folder}/nowhere.json can't be read`)
  t.equal(said.stderr.trim().split('\n').length, 1)
  const nowhere = { ABOHAWA_CATALOGUE__PATH: `${folder}/nowhere.json` }
  t.match(await runCommand(['catalogue', 'publish', '3026'], nowhere), { code: 1, stderr: 'nowhere.json' })
})

t.test('a stop on Redis is no outage of it', async t => {
  const redis = await testRedis(t)
  for (let stops = 0; stops < 2; stops++) {
    const { child, lines, closed } = await serve(t, redis.env)
    child.kill('SIGTERM')
    await closed
    const last = lines.at(-1) ?? '{}'
    t.equal(JSON.parse(last).msg, 'stopped', last)
  }
})

t.test('SIGHUP logs the fault of a faulty file, and never a reload; SIGTERM ends it gracefully', async t => {
  const folder = t.testdir({ 'config.yaml': 'server:\n  port: 0\n' })
  copyFileSync(usualCatalogue, `${folder}/places.json`)
  const { child, lines, exited } = await serve(
    t,
    { ABOHAWA_CATALOGUE__PATH: `${folder}/places.json`, ABOHAWA_TEST_CATALOGUE__POLL_EVERY: '1h' },
    ['--config', `${folder}/config.yaml`],
    folder,
  )
  const logged = (msg: string) =>
    until(`the log says ${msg}`, () => lines.map(line => JSON.parse(line)).find(line => line.msg === msg))
  child.kill('SIGHUP')
  await logged('catalogue reloaded')
  lines.length = 0
  writeFileSync(`${folder}/places.json`, '{"broken')
  writeFileSync(`${folder}/config.yaml`, 'server:\n  prot: 1\n')
  child.kill('SIGHUP')
  t.match(await logged('catalogue not reloaded'), { reason: /places\.json: file, the whole: not JSON/ })
  t.match(await logged('configuration rejected, keeping the previous one'), {
    reason: /config\.yaml:2:3: server has an invalid setting$/,
  })
  t.notOk(lines.some(line => line.includes('"catalogue reloaded"')))
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

t.test('a signal to npm and all that it started is one signal, and is followed by the drain', async t => {
  const { child, said, closed } = spawnProgram(t, ['npm', 'run', '-s', 'abohawa', '--', 'serve'], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: cleanEnv({ ...bareEnv, ABOHAWA_SERVER__DRAIN_FOR: '500ms', ABOHAWA_STORE__PATH: ':memory:' }),
    // A process group of its own, as a terminal gives one to each job.
    detached: true,
  })
  const group = -(child.pid ?? 0)
  t.teardown(() => {
    try {
      process.kill(group, 'SIGKILL')
    } catch {}
  })
  await until('it serves', () => said.stdout.includes('"listener":"api"'))
  process.kill(group, 'SIGINT')
  await closed
  t.match(said.stdout, /"msg":"stopping"[\s\S]*"msg":"stopped"/)
})

t.test('a second signal after a second ends at once', async t => {
  const { child, exited } = await serve(t, { ABOHAWA_SERVER__DRAIN_FOR: '10m' })
  const isEnded = () => {
    child.kill('SIGTERM')
    return child.exitCode !== null
  }
  await until('it ended', isEnded, { everyMs: 200 })
  t.equal(await exited, 1)
})
