// Without it lines of the log could be lost, cut or doubled when its file is rotated.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { spawnServe } from '../support/process.ts'
import { patienceMs, until } from '../support/until.ts'

type Line = { msg: string; listener?: string; url?: string; requestId?: string; reason?: string }

const serve = async (t: Test, env: Record<string, string> = {}) => {
  const folder = t.testdir({ log: {} })
  const file = join(folder, 'log', 'abohawa.log')
  const { child, exited, said } = spawnServe(t, folder, ['ignore', 'pipe', 'pipe'], {
    ABOHAWA_LOG__FILE: file,
    ...env,
  })
  const linesIn = (path: string): Line[] =>
    (existsSync(path) ? readFileSync(path, 'utf8') : '')
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
  const apiUrl = () =>
    until('the address of the API', () => linesIn(file).find(({ listener }) => listener === 'api')?.url)
  return { folder, file, child, exited, printed: () => said.stdout + said.stderr, linesIn, apiUrl }
}

t.test('no line is lost, cut or written twice', async t => {
  const { file, child, exited, linesIn, apiUrl, printed } = await serve(t)
  const pool = new Pool(await apiUrl(), { connections: 16 })
  t.equal(statSync(file).mode & 0o777, 0o640 & ~process.umask())
  let sent = 0
  let isRotating = true
  const sendMany = async () => {
    for (const endsAt = performance.now() + patienceMs; isRotating && performance.now() < endsAt; ) {
      sent += 1
      const headers = { 'x-request-id': `request-${sent}` }
      const { body } = await pool.request({ method: 'GET', path: '/api/v1/locations', headers })
      await body.dump()
    }
  }
  const traffic = Promise.all(Array.from({ length: 16 }, sendMany))
  const rotations = 8
  for (let i = 1; i <= rotations; i++) {
    const before = sent
    await until('there is traffic', () => sent > before + 300)
    renameSync(file, `${file}.${i}`)
    child.kill('SIGUSR2')
    await until('the file is there again', () => existsSync(file))
  }
  isRotating = false
  await traffic
  await pool.close()
  child.kill('SIGTERM')
  t.equal(await exited, 0)

  const files = readdirSync(join(file, '..')).sort()
  t.equal(files.length, rotations + 1)
  const requests = new Map<string, number>()
  let reopened = 0
  for (const name of files) {
    const path = join(file, '..', name)
    // One that was given away at once may hold nothing.
    t.match(readFileSync(path, 'utf8'), /^$|\n$/, `${name} ends with a whole line`)
    for (const { msg, requestId } of linesIn(path)) {
      if (msg === 'log file reopened') reopened += 1
      if (msg === 'answered' && requestId) requests.set(requestId, (requests.get(requestId) ?? 0) + 1)
    }
  }
  t.equal(requests.size, sent, `${sent} requests`)
  t.ok([...requests.values()].every(count => count === 1))
  t.equal(reopened, rotations)
  t.equal(printed(), '', 'nothing goes to standard output')
})

t.test('a file that can’t be opened again is a line in the former one', async t => {
  const { file, child, exited, linesIn, apiUrl, printed } = await serve(t)
  await apiUrl()
  renameSync(file, `${file}.1`)
  mkdirSync(file)
  child.kill('SIGUSR2')
  const line = await until('the line', () => linesIn(`${file}.1`).find(({ msg }) => /not reopened/.test(msg)))
  t.match(line, {
    level: 'error',
    reason: /log\.file is .*abohawa\.log, which can't be written: it is a directory/,
  })
  // The former file may be deleted by now.
  await until('standard error says so', () =>
    /^abohawa: log\.file is .*it is a directory.*; the log continues in the previous file\n$/.test(printed()),
  )
  rmSync(file, { recursive: true })
  child.kill('SIGUSR2')
  await until('the file is there', () => linesIn(file).some(({ msg }) => msg === 'log file reopened'))
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  t.equal(linesIn(file).at(-1)?.msg, 'stopped')
})

t.test('one that can’t be opened at the start is an error of one sentence', async t => {
  const { exited, printed } = await serve(t, { ABOHAWA_LOG__FILE: 'nowhere/abohawa.log' })
  t.equal(await exited, 1)
  t.match(printed(), /^abohawa: log\.file is nowhere\/abohawa\.log, which can't be written: ENOENT.*\n$/)
})
