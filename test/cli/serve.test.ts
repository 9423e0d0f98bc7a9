// Without this, `serve` could depend on its folder, or ignore a signal to stop or reload.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { product, runCommand } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const usual = {
  PATH: process.env.PATH,
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:1',
  ABOHAWA_CATALOGUE__PATH: usualCatalogue,
}

type Line = { readonly msg: string; readonly reason?: string }

const serve = async (
  t: Test,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  folder = t.testdir(),
) => {
  const child = spawn(product, ['serve', ...args], {
    cwd: folder,
    env: { ...usual, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const urls: Record<string, string> = {}
  const lines: Line[] = []
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    errors += text
  })
  await new Promise<void>(resolve => {
    createInterface({ input: child.stdout }).on('line', line => {
      const entry = JSON.parse(line)
      const { msg, listener, url } = entry
      lines.push(entry)
      if (msg === 'listening') urls[listener] = url
      if (urls.api) resolve()
    })
    void exited.then(() => resolve())
  })
  return { child, urls, lines, exited, errors: () => errors, folder }
}

t.test('it starts in an empty folder, with the places that come with the product', async t => {
  const { child, urls, errors, exited } = await serve(t, { ABOHAWA_CATALOGUE__PATH: '' })
  const ready = await fetch(`${urls.ops}/readyz`)
  t.equal(ready.status, 200)
  t.match(await ready.text(), /[\d,]{4,} places/)

  await t.test('SIGUSR1 opens no debugger', async t => {
    child.kill('SIGUSR1')
    // The signal was sent before this request, so it has been handled.
    for (let i = 0; i < 20; i++) t.equal((await fetch(`${urls.ops}/livez`)).status, 200)
    t.notMatch(errors(), 'Debugger')
  })

  await t.test('SIGQUIT ends it gracefully', async t => {
    child.kill('SIGQUIT')
    t.strictSame(await exited, [0, null])
  })
})

t.test('a missing file of places is named with its setting and its full path', async t => {
  const { exited, errors, folder } = await serve(t, { ABOHAWA_CATALOGUE__PATH: 'nowhere.json' })
  t.strictSame(await exited, [1, null])
  t.match(errors(), `abohawa: catalogue.path: ${folder}/nowhere.json can't be read`)
  t.equal(errors().trim().split('\n').length, 1)
  const nowhere = { ABOHAWA_CATALOGUE__PATH: `${folder}/nowhere.json` }
  t.match(await runCommand(['catalogue', 'publish', '3026'], nowhere), { code: 1, stderr: 'nowhere.json' })
})

t.test('a stop on Redis is no outage of it', async t => {
  const redis = await testRedis(t)
  for (let stops = 0; stops < 2; stops++) {
    const { child, lines } = await serve(t, redis.env)
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    await closed
    t.equal(lines.at(-1)?.msg, 'stopped', JSON.stringify(lines.at(-1)))
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
  const logged = (msg: string) => until(`the log says ${msg}`, () => lines.find(line => line.msg === msg))
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
  t.notOk(lines.some(line => line.msg === 'catalogue reloaded'))
  child.kill('SIGTERM')
  t.strictSame(await exited, [0, null])
})

t.test('a signal to npm and all that it started is one signal, and is followed by the drain', async t => {
  const child = spawn('npm', ['run', '-s', 'abohawa', '--', 'serve'], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: { ...usual, ABOHAWA_SERVER__DRAIN_FOR: '500ms', ABOHAWA_STORE__PATH: ':memory:' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A process group of its own, as a terminal gives one to each job.
    detached: true,
  })
  const group = -(child.pid ?? 0)
  const ended = once(child.stdout, 'close')
  t.teardown(() => {
    try {
      process.kill(group, 'SIGKILL')
    } catch {}
  })
  let log = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    log += text
  })
  await until('it serves', () => log.includes('"listener":"api"'))
  process.kill(group, 'SIGINT')
  await ended
  t.match(log, /"msg":"stopping"[\s\S]*"msg":"stopped"/)
})

t.test('a second signal after a second ends at once', async t => {
  const { child, exited } = await serve(t, { ABOHAWA_SERVER__DRAIN_FOR: '10m' })
  const isEnded = () => {
    child.kill('SIGTERM')
    return child.exitCode !== null
  }
  await until('it ended', isEnded, { everyMs: 200 })
  t.strictSame(await exited, [1, null])
})
