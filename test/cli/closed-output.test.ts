// Commands whose reader leaves early: what streams ends well and quietly, a verdict keeps its exit code, and no key is created that
// nobody sees.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTarget } from '../load/replay/scripted-target.ts'
import { arriving, linesOf } from '../load/replay/send-some.ts'
import { cleanEnv, product, runCommand } from '../support/process.ts'

const folder = t.testdir()
const env = {
  ABOHAWA_STORE__PATH: join(folder, 'store.db'),
  ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9',
}

/** A command whose output nobody reads, or the first bytes of it. */
const unread = async (args: readonly string[], reads: 'nothing' | 'some' = 'nothing') => {
  const child = spawn(product, args, { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', text => {
    stderr += text
  })
  if (reads === 'some') await once(child.stdout, 'data')
  child.stdout.destroy()
  const [code] = await once(child, 'close')
  return { code, stderr }
}

t.test('a stream whose reader has enough ends well, without a word', async t => {
  const endless = ['traffic', 'generate', '--rate', '50', '--duration', '24h']
  t.match(await unread(endless, 'some'), { code: 0, stderr: '' })
})

t.test('what a command found is its exit code, whoever reads it', async t => {
  const args = ['doctor']
  const { code } = await runCommand(args, env)
  t.equal(code, 1, 'the provider does not answer')
  t.equal((await unread(args)).code, 1)
})

t.test('standard error without a reader takes nothing from a command', async t => {
  const run = async (args: readonly string[]) => {
    const child = spawn(product, args, { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
    child.stderr.destroy()
    let stdout = ''
    child.stdout.on('data', text => {
      stdout += text
    })
    const [code] = await once(child, 'close')
    return { code, stdout }
  }
  const create = ['keys', 'create', '--create-store', '--subscriber', 'B', '--tier', 'free']
  t.match(await run(create), { code: 0, stdout: /^svc_live_/ })
  t.match(await run(['keys', 'list']), { code: 0, stdout: /^id / })
  const target = await startTarget(t)
  const traffic = join(folder, 'traffic.ndjson')
  // The faulty line is told on standard error before the report.
  writeFileSync(traffic, `${linesOf(arriving([0, 1]))}{"at":"yesterday"}\n`)
  t.match(await run(['replay', traffic, '--target', target.url]), {
    code: 0,
    stdout: /2 due, 2 sent, 2 answered/,
  })
})

t.test('keys are not created when nobody sees them', async t => {
  const create = (...more: string[]) => ['keys', 'create', '--subscriber', 'A', '--tier', 'free', ...more]
  t.equal((await runCommand(create('--create-store'), env)).code, 0)
  const { code, stderr } = await unread(create('--count', '3000', '--csv'))
  t.equal(code, 1)
  t.match(stderr, /^abohawa: standard output can't be written: .*EPIPE/)
  const listed = JSON.parse((await runCommand(['keys', 'list', '--json'], env)).stdout)
  t.ok(listed.length < 600, `${listed.length} of 3,002`)
})
