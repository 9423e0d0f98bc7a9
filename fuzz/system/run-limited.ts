// Runs a command to its end in a process of its own, with limited memory, time and output.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cleanEnv } from '../../test/support/process.ts'
import { underMemoryLimit } from './gateway-process.ts'

const maxOutput = 2_000_000

export type Ended = {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
  readonly isLate: boolean
  /** It was ended for what it wrote. */
  readonly isEnough?: boolean
}

/** @param enough ends the command as soon as its output has this */
export const runLimited = async (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  withinMs: number,
  enough?: string,
): Promise<Ended> => {
  const [program = '', ...rest] = [...underMemoryLimit, ...args]
  const cwd = new URL('../..', import.meta.url)
  const child = spawn(program, rest, { cwd, env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr, isLate, isEnough] = ['', '', false, false]
  child.stdout.on('data', (part: Buffer) => {
    if (stdout.length < maxOutput) stdout += part
    if (enough === undefined || isEnough || !stdout.includes(enough)) return
    isEnough = true
    child.kill('SIGKILL')
  })
  child.stderr.on('data', (part: Buffer) => {
    if (stderr.length < maxOutput) stderr += part
  })
  const timer = setTimeout(() => {
    isLate = true
    child.kill('SIGKILL')
  }, withinMs)
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  return { code, signal, stdout, stderr, isLate, isEnough }
}
