// Without this, a reader that leaves or a full disk could turn a command into a crash, or lose a new key.

import { type StdioOptions, spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cleanEnv, product, runCommand, spawnProgram, withoutPrlimit } from '../support/process.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { startTarget } from '../tools/load/replay/scripted-target.ts'
import { arriving, linesOf } from '../tools/load/replay/send-some.ts'

const folder = t.testdir()
const env = {
  ABOHAWA_STORE__PATH: join(folder, 'store.db'),
  ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9',
}

/** A command whose output nobody reads, or the first bytes of it. */
const unread = async (args: readonly string[], reads: 'nothing' | 'some' = 'nothing') => {
  const { child, said, closed } = spawnProgram(t, [product, ...args], { env: cleanEnv(env) })
  if (reads === 'some') await until('some is read', () => said.stdout)
  child.stdout?.destroy()
  return { code: await closed, stderr: said.stderr }
}

t.test('a stream whose reader has enough ends well, without a word', async t => {
  const endless = ['traffic', 'generate', '--rate', '50', '--duration', '24h']
  t.hasStrict(await unread(endless, 'some'), { code: 0, stderr: '' })
})

t.test('what a command found is its exit code, whoever reads it', async t => {
  const args = ['doctor']
  const { code } = await runCommand(args, env)
  t.equal(code, 1, 'the provider does not answer')
  t.equal((await unread(args)).code, 1)
})

t.test('standard error without a reader takes nothing from a command', async t => {
  const run = async (args: readonly string[]) => {
    const { child, said, closed } = spawnProgram(t, [product, ...args], { env: cleanEnv(env) })
    child.stderr?.destroy()
    return { code: await closed, stdout: said.stdout }
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

const onFullDisk = { skip: withoutPrlimit || withoutOwnRedis }
t.test('on a disk that fills up, the keys created are those that can be read', onFullDisk, async t => {
  const redis = await startRedis(t)
  const store = { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url }
  const create = ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'free', '--count', '200']
  const limit = ['--fsize=15000:unlimited', product]
  const file = join(folder, 'issued')
  const onDisk = (args: readonly string[]) => {
    const fd = openSync(file, 'w')
    const stdio: StdioOptions = ['ignore', fd, 'pipe']
    const options = { stdio, env: cleanEnv(store), encoding: 'utf8' } as const
    const { status, stderr } = spawnSync('prlimit', [...limit, ...args], options)
    closeSync(fd)
    return { status, stderr, text: readFileSync(file, 'utf8') }
  }
  const idsIn = (text: string) => text.match(/key_\w{12}/g) ?? []
  const ids = async () => {
    const { stdout } = await runCommand(['keys', 'list', '--json'], store)
    return JSON.parse(stdout).map(({ id }: { id: string }) => id) as string[]
  }

  const out = join(folder, 'issued.json')
  const toFile = onDisk([...create, '--json', '--out', out])
  const sentence = /^abohawa: --out can't be written: EFBIG.*; 50 created, .* of 200: --count 150 creates the/
  t.match(toFile, { status: 1, stderr: sentence, text: '' })
  const first = await ids()
  const shown: { id: string }[] = JSON.parse(readFileSync(out, 'utf8'))
  t.strictSame(shown.map(({ id }) => id).toSorted(), first.toSorted())

  const { status, stderr, text } = onDisk([...create, '--csv'])
  t.equal(status, 1)
  t.match(stderr, /^abohawa: standard output can't be written: EFBIG.*; 150 created, .* not valid: key_/)
  const second = (await ids()).slice(first.length)
  t.strictSame(idsIn(text).slice(0, 150).toSorted(), second.toSorted())
  t.ok(stderr.includes(idsIn(text)[150] ?? 'none'), 'shown in part, and named as not valid')

  const usual = onDisk(['keys', 'list', '--csv'])
  t.match(usual, { status: 1, stderr: /^abohawa: standard output can't be written: EFBIG/ })
  t.equal(usual.text.length, 15_000, 'no output is cut in silence')
})

t.test('a key is replaced after the new one is shown', async t => {
  const create = ['keys', 'create', '--create-store', '--subscriber', 'R', '--tier', 'free', '--json']
  const { id } = JSON.parse((await runCommand(create, env)).stdout)
  const rotate = ['keys', 'rotate', id, '--overlap', '0s']
  const { code, stderr } = await unread(rotate)
  t.equal(code, 1)
  t.match(stderr, `key ${id} was not replaced`)
  const [shown] = JSON.parse(`[${(await runCommand(['keys', 'show', id, '--json'], env)).stdout}]`)
  t.equal(shown.formerKeyUntil, null)
  t.match(await runCommand(rotate, env), { code: 0, stdout: /^svc_live_/ })
})
