// One gateway as its own process, under a memory limit: its URL, whether it is alive, its memory, and the findings in its log
// and error output. Started with the product's own command, as operators start it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { cleanEnv, product } from '../../test/support/process.ts'
import { type Finding, finding } from '../finding.ts'
import { createLogWatch } from './log-watch.ts'
import { underMemoryLimit } from './memory-limit.ts'

export type Address = { readonly host: string; readonly port: number }

export type GatewayProcess = {
  readonly api: Address
  readonly apiUrl: string
  readonly opsUrl: string
  isAlive(): boolean
  /** Resident memory in bytes; 0 where the system does not report it. */
  residentBytes(): number
  /** The findings in its log, error output and exit since the last call. */
  findings(): Finding[]
  /** Stops it with a signal, as a service manager does, and checks that it stops. */
  stop(): Promise<Finding[]>
  /** Ends it at once. */
  kill(): Promise<void>
}

const startWithinMs = 20_000
const stopWithinMs = 20_000

/** @throws Error when it does not start */
export const startGatewayProcess = async (
  env: Record<string, string>,
  secrets: () => readonly string[],
): Promise<GatewayProcess> => {
  const [command = product, ...args] = [...underMemoryLimit, product, 'serve']
  const child = spawn(command, args, { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? `exit code ${code}`))
  const urls = new Map<unknown, string>()
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  const log = createLogWatch(secrets, line => {
    if (line.msg !== 'listening') return
    urls.set(line.listener, String(line.url))
    if (urls.size === 2) resolve()
  })
  child.stdout.on('data', log.add)
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < 20_000) errors += text
  })
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null
  const kill = async (): Promise<void> => {
    if (isAlive()) child.kill('SIGKILL')
    await ended
  }

  await Promise.race([
    listening,
    ended.then(how => Promise.reject(new Error(`the gateway ended at its start, ${how}: ${errors}`))),
    pause(startWithinMs, undefined, { ref: false }).then(() =>
      Promise.reject(new Error(`the gateway did not start within ${startWithinMs} ms`)),
    ),
  ])
  const { hostname, port } = new URL(urls.get('api') ?? '')

  const takeErrors = (rule: string): Finding[] => {
    if (errors === '') return []
    const lines = errors
    errors = ''
    return [finding(rule, lines)]
  }
  return {
    api: { host: hostname, port: Number(port) },
    apiUrl: urls.get('api') ?? '',
    opsUrl: urls.get('ops') ?? '',
    isAlive,
    residentBytes: () => (isAlive() ? residentBytesOf(child.pid ?? 0) : 0),
    findings: () => [
      ...log.findings(),
      ...(isAlive()
        ? takeErrors('the process wrote to its error output')
        : [finding('the process ended', `${child.signalCode ?? `exit code ${child.exitCode}`}: ${errors}`)]),
    ],
    stop: async () => {
      const wasAlive = isAlive()
      child.kill('SIGTERM')
      const how = await Promise.race([ended, pause(stopWithinMs, 'late' as const, { ref: false })])
      await kill()
      const notClean =
        wasAlive && how !== 'exit code 0' ? [finding('the process does not stop on a signal', how)] : []
      return [...log.findings(), ...notClean, ...takeErrors('the process wrote to its error output')]
    },
    kill,
  }
}

const residentBytesOf = (pid: number): number => {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
