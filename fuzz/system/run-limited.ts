// Runs a command to its end in a separate process, with limited memory, time and output.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cleanEnv } from '../../test/support/process.ts'
import { underMemoryLimit } from './gateway-process.ts'

const maxOutput = 2_000_000

/** @param enough ends the command, as a success, when its output has this */
export const runLimited = async (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  withinMs: number,
  enough?: string,
) => {
  const [program = '', ...rest] = [...underMemoryLimit, ...args]
  const cwd = new URL('../..', import.meta.url)
  const child = spawn(program, rest, { cwd, env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  let [isLate, isEnough] = [false, false]
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (part: Buffer) => {
      if (output[name].length < maxOutput) output[name] += part
      if (enough === undefined || !output.stdout.includes(enough)) return
      isEnough = true
      child.kill('SIGKILL')
    })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const timer = setTimeout(() => {
    isLate = true
    kill()
  }, withinMs)
  const [code, signal]: [number | null, string | null] = (await once(child, 'close')) as never
  clearTimeout(timer)
  process.off('exit', kill)
  return { ...output, isLate, code: isEnough ? 0 : code, signal: isEnough ? null : signal }
}
export type Ended = Awaited<ReturnType<typeof runLimited>>
