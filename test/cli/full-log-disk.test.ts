// Without this, a full log disk could stop the gateway, or lines could be lost without a count.

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { metricOf } from '../support/metric.ts'
import { spawnServe, withoutPrlimit } from '../support/process.ts'
import { patienceMs, until } from '../support/until.ts'

/** The gateway with its log appended to a file; standard error is separate. */
const serve = (t: Test, log: string) => {
  const folder = t.testdir()
  const fd = openSync(log, 'a')
  const started = spawnServe(t, folder, ['ignore', fd, 'pipe'])
  closeSync(fd)
  return started
}

type Line = { msg: string; listener?: string; url?: string; dropped?: number; reason?: string }
const linesOf = (log: string): Line[] =>
  JSON.parse(`[${readFileSync(log, 'utf8').trim().replaceAll('\n', ',')}]`)

const urlOf = (log: string, listener: string): Promise<string> =>
  until(`the address of ${listener}`, () => {
    const text = readFileSync(log, 'utf8')
    if (!text.endsWith('\n')) return undefined
    return linesOf(log).find(line => line.msg === 'listening' && line.listener === listener)?.url
  })

const sendRequest = async (api: string): Promise<number> => {
  const response = await fetch(`${api}/api/v1/locations`)
  await response.arrayBuffer()
  return response.status
}

t.test('it goes on serving, reports the lost lines, and ends in time', { skip: withoutPrlimit }, async t => {
  const log = `${t.testdir()}/abohawa.log`
  const { child, exited, said } = serve(t, log)
  const api = await urlOf(log, 'api')
  const ops = await urlOf(log, 'ops')
  t.equal(await sendRequest(api), 401)
  await until('the line of the request', () => readFileSync(log, 'utf8').includes('"endpoint":"locations"'))

  // From here the file may grow by 100 bytes, which ends in the middle of a line.
  const limit = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', [`--pid=${child.pid}`, `--fsize=${bytes}:unlimited`])
  limit(statSync(log).size + 100)
  for (let i = 0; i < 50; i++) t.equal(await sendRequest(api), 401)
  const lost = await until('the count of lost lines', async () => {
    const count = (await metricOf(ops, 'abohawa_log_lines_dropped_total')) ?? 0
    return count >= 49 ? count : undefined
  })
  t.ok(lost <= 51, `${lost} lines lost of 50 and what the gateway itself said`)
  t.equal((await fetch(`${ops}/livez`)).status, 200)
  t.match(said.stderr, /^abohawa: the log can't be written, dropping lines until it can: EFBIG.*\n$/)

  limit('unlimited')
  t.equal(await sendRequest(api), 401)
  const line = await until('the report of lost lines', () =>
    readFileSync(log, 'utf8').includes('"dropped"') && readFileSync(log, 'utf8').endsWith('\n')
      ? linesOf(log).find(line => line.dropped !== undefined)
      : undefined,
  )
  t.match(line, { level: 'warn', msg: 'log lines dropped', reason: /EFBIG/ })
  t.ok((line.dropped ?? 0) >= 49)
  // The gateway completes the cut line once there is room, so every line is whole.
  t.ok(linesOf(log).length > 5)
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

t.test('it ends in time although there is never room', async t => {
  const { child, exited, said } = serve(t, '/dev/full')
  await until('the message on standard error', () => said.stderr)
  t.match(said.stderr, /^abohawa: the log can't be written, dropping lines until it can: ENOSPC.*\n$/)
  // Signal handlers are installed before the first line is written.
  child.kill('SIGTERM')
  t.equal(await Promise.race([exited, pause(patienceMs, 'still running', { ref: false })]), 0)
})
