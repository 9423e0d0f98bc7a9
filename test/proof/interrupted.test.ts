// Without it an interrupted proof could leave Redis processes behind, or say nothing of what it found.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { childrenOf } from '../support/proc.ts'
import { spawnProgram } from '../support/process.ts'
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
/** Whether a process is a Redis that runs; one that has ended may wait to be reaped. */
const isRedis = (pid: number): boolean => /^\d+ \(redis-server\) [^Z]/.test(procText(`${pid}/stat`))

/** A proof with one lane, and the process of that lane. */
const begin = async (t: Test) => {
  const line = [process.execPath, main, '--seeds', '100', '--lanes', '1', '--keep', t.testdir()]
  const { child: proof, said, closed } = spawnProgram(t, line, { stdio: ['ignore', 'pipe', 'ignore'] })
  const lane = await until('there is a lane', () => childrenOf(proof.pid)[0])
  return { proof, lane, said, closed }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  t.test(`${signal} leaves no Redis`, { skip }, async t => {
    const { proof, lane, said, closed } = await begin(t)
    const redis = await until('a lane has its Redis', () => childrenOf(lane).find(isRedis))
    proof.kill(signal)
    t.equal(await closed, 130)
    t.match(said.stdout, /^0 histories .*; none was finished/, 'what it found is printed')
    await until('its Redis has ended', () => !isRedis(redis))
  })

t.test('nor does a signal that comes while a lane is opening', { skip }, async t => {
  const { proof, lane } = await begin(t)
  proof.kill('SIGTERM')
  const started = new Set<number>()
  await until('the lane has ended', () => {
    for (const child of childrenOf(lane)) started.add(child)
    return !/^\d+ \([^)]*\) [^Z]/.test(procText(`${lane}/stat`))
  })
  await until('and whatever it started', () => ![...started].some(isRedis))
})
