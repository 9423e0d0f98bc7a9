// One gateway as its own process, under a memory limit: its URLs, whether it is alive, its memory, and what is wrong with its log
// and error output. Started with the product's own command, as operators start it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { residentMiB } from '../../test/support/proc.ts'
import { cleanEnv, product, withoutPrlimit } from '../../test/support/process.ts'
import { patienceMs } from '../../test/support/until.ts'
import { demand } from '../fault.ts'
import { createLogWatch } from './log-watch.ts'

const diesWithinMs = 300
const limitBytes = 1536 * 1024 * 1024
const hasPrlimit = !withoutPrlimit

/** What starts a command under prlimit (util-linux), so that the machine survives, where there is one. */
export const underMemoryLimit: readonly string[] = hasPrlimit ? ['prlimit', `--data=${limitBytes}`] : []
export const memoryLimitText = hasPrlimit
  ? `data of each gateway limited to ${limitBytes / 2 ** 20} MiB`
  : 'memory is not limited: prlimit is missing'

export type GatewayProcess = {
  readonly apiUrl: string
  readonly opsUrl: string
  isAlive(): boolean
  /** Resolves when it has ended, or is not about to: the exit of a process that has just died is not reported yet. */
  endsSoon(): Promise<void>
  /** Resident memory; 0 where the system does not report it. */
  residentMiB(): number
  /** Starts a stopwatch for the gateway's own work: it stands still while other work has the machine. */
  stopwatch(): () => number
  /** @throws Fault for what stands in its log, error output and exit since the last call */
  check(): void
  /** Stops it with a signal, as a service manager does. @throws Fault when it does not stop */
  stop(): Promise<void>
  /** Ends it at once. */
  kill(): Promise<void>
}

/** @throws Error when it does not start */
export const startGatewayProcess = async (
  env: Record<string, string>,
  secret: string,
): Promise<GatewayProcess> => {
  const [command = product, ...args] = [...underMemoryLimit, product, 'serve']
  const child = spawn(command, args, { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? `exit code ${code}`))
  const urls = new Map<unknown, string>()
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  const log = createLogWatch(secret, line => {
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
  const late = pause(patienceMs, `it did not start within ${patienceMs} ms`, { ref: false })
  const failed = await Promise.race([listening, ended, late])
  if (failed !== undefined) {
    await kill()
    throw new Error(`the gateway does not start, ${failed}: ${errors}`)
  }

  const check = (): void => {
    const text = errors
    errors = ''
    log.check()
    demand(isAlive(), 'the process ended', `${child.signalCode ?? `exit code ${child.exitCode}`}: ${text}`)
    demand(text === '', 'the process wrote to its error output', text)
  }
  return {
    apiUrl: urls.get('api') ?? '',
    opsUrl: urls.get('ops') ?? '',
    isAlive,
    residentMiB: () => (isAlive() && existsSync('/proc/self') ? residentMiB(child.pid) || 0 : 0),
    stopwatch: () => {
      const [started, used] = [performance.now(), processorMsOf(child.pid ?? 0)]
      // Several threads may have worked at once.
      return () => Math.min(performance.now() - started, processorMsOf(child.pid ?? 0) - used)
    },
    endsSoon: async () => void (await Promise.race([ended, pause(diesWithinMs)])),
    check,
    stop: async () => {
      check()
      child.kill('SIGTERM')
      const how = await Promise.race([ended, pause(patienceMs, 'late', { ref: false })])
      await kill()
      demand(how === 'exit code 0', 'the process does not stop on a signal', how)
      log.check()
    },
    kill,
  }
}

/** What a process has had of the processors since its start; the time since the beginning of this one where that is unknown. */
const processorMsOf = (pid: number): number => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    const ticks = Number(fields[11]) + Number(fields[12])
    return ticks * 10
  } catch {
    return performance.now()
  }
}
