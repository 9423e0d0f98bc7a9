// Without it an interrupted proof could leave Redis processes behind.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cleanEnv } from '../support/process.ts'
import { withoutOwnRedis as skip } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const main = join(import.meta.dirname, '..', '..', 'proof', 'main.ts')

/** What Linux says of a process; empty once it is gone. */
const procText = (path: string): string => {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return ''
  }
}
const childrenOf = (pid: number | string): string[] =>
  procText(`${pid}/task/${pid}/children`).split(' ').filter(Boolean)
/** Whether a process is a Redis that runs; one that has ended may wait to be reaped. */
const isRedis = (pid: string): boolean => /^\d+ \(redis-server\) [^Z]/.test(procText(`${pid}/stat`))

/** A proof with one lane, and the process of that lane. */
const begin = async (t: Test) => {
  const args = [main, '--seeds', '100', '--lanes', '1', '--keep', t.testdir()]
  const proof = spawn(process.execPath, args, { env: cleanEnv(), stdio: 'ignore' })
  t.teardown(() => proof.kill('SIGKILL'))
  const lane = await until('there is a lane', () => childrenOf(proof.pid ?? 0)[0])
  return { proof, lane, exited: once(proof, 'exit') }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  t.test(`${signal} leaves no Redis`, { skip }, async t => {
    const { proof, lane, exited } = await begin(t)
    const redis = await until('a lane has its Redis', () => childrenOf(lane).find(isRedis))
    proof.kill(signal)
    t.strictSame(await exited, [130, null])
    await until('its Redis has ended', () => !isRedis(redis))
  })

t.test('nor does a signal that comes while a lane is opening', { skip }, async t => {
  const { proof, lane } = await begin(t)
  proof.kill('SIGTERM')
  const started = new Set<string>()
  await until('the lane has ended', () => {
    for (const child of childrenOf(lane)) started.add(child)
    return !/^\d+ \([^)]*\) [^Z]/.test(procText(`${lane}/stat`))
  })
  await until('and whatever it started', () => ![...started].some(isRedis))
})
