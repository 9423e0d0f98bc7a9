// Processes of the benchmark: the measured one on its own core, everything else on the others. Starts them with their output in
// a file, reads their processor time and memory, and ends them with their scope.

import { type ChildProcess, execFile, type StdioOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Env } from '../../test/scenarios/set-up.ts'
import { childrenOf } from '../../test/support/proc.ts'
import { cleanEnv } from '../../test/support/process.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { until } from '../../test/support/until.ts'
import { sum } from '../row.ts'

/** Cores that this process may use, by number. */
const affinity = spawnSync('taskset', ['-cp', `${process.pid}`]).stdout?.toString() ?? ''
const cores = (/: ([\d,-]+)/.exec(affinity)?.[1] ?? '')
  .split(',')
  .filter(Boolean)
  .flatMap(part => {
    const [from = 0, to = from] = part.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, i) => from + i)
  })

/** False without taskset or with a single core: then the kernel decides where everything runs. */
const pins = cores.length > 1

export const serverCore = String(cores[0])
/** Cores of callers, Redis, provider and this process. */
export const loadCores = cores.slice(1).join(',')

/**
 * Stands before the command of a consumer whose latency is measured: the kernel prefers it to all else on its core, so that what is
 * measured is the gateway. By its share of the time, not before all else: it would wait for a thread of its own for good.
 */
export const inFront = ['nice', '-n', '-15']

/** Moves this process, and all that it starts from now on, away from the measured core. */
export const stepAside = (): void => {
  if (pins) spawnSync('taskset', ['-a', '-cp', loadCores, String(process.pid)])
}

/** The command line that runs a command on these cores. */
export const onCores = (list: string, command: string, args: readonly string[]): [string, string[]] =>
  pins ? ['taskset', ['-c', list, command, ...args]] : [command, [...args]]

/** What a command printed until its end. @throws Error with what it wrote on standard error */
export const outputOf = (command: string, args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(command, args, { maxBuffer: 1e8 }, (error, stdout, stderr) =>
      error ? reject(new Error(`${command}: ${stderr || stdout || error.message}`)) : resolve(stdout),
    )
  })

export type Spawned = {
  readonly child: ChildProcess
  /** File of its standard output; it may be emptied at any time. */
  readonly output: string
}

/** @property urls base addresses by listener */
export type Listening = { readonly pid: number; readonly urls: Readonly<Record<string, string>> }

let started = 0

/** Starts a command with its output in a file of the folder. */
export const spawnPinned = (
  scope: Teardown,
  folder: string,
  core: string,
  [command, ...args]: readonly [string, ...string[]],
  env: Env = {},
): Spawned => {
  const output = join(folder, `output-${started++}.log`)
  // Opened for appending, so that the file can be emptied while the process writes.
  const file = openSync(output, 'a')
  const [program, all] = onCores(core, command, args)
  const stdio: StdioOptions = ['ignore', file, file]
  const child = spawn(program, all, { env: cleanEnv({ NODE_ENV: 'production', ...env }), stdio })
  closeSync(file)
  const exited = once(child, 'exit')
  scope.teardown(() => endOf(child, exited))
  return { child, output }
}

/** Ends a process, by force after five seconds. */
const endOf = async (child: ChildProcess, exited: Promise<unknown>): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
  else return
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(late)
}

/** Starts a command and waits until its output has the addresses of the named listeners, from each of its processes. */
export const startListening = async (
  scope: Teardown,
  folder: string,
  core: string,
  command: readonly [string, ...string[]],
  { listeners, processes = 1 }: { readonly listeners: readonly string[]; readonly processes?: number },
  env: Env = {},
): Promise<Listening> => {
  const { child, output } = spawnPinned(scope, folder, core, command, env)
  const urls: Record<string, string> = {}
  await until(`${command.join(' ')} listens`, async () => {
    if (child.exitCode !== null) return true
    const all: { listener: string; url: string }[] = (await readFile(output, 'utf8'))
      .split('\n')
      .filter(line => line.includes('"listening"') && line.endsWith('}'))
      .map(line => JSON.parse(line))
    for (const { listener, url } of all) urls[listener] = url
    return listeners.every(name => all.filter(({ listener }) => listener === name).length >= processes)
  })
  if (child.exitCode !== null)
    throw new Error(`${command.join(' ')} ended with ${child.exitCode}: ${await readFile(output, 'utf8')}`)
  return { pid: child.pid ?? 0, urls }
}

/**
 * Lets a process run as soon as it has something to do, where it shares its core with a load that never rests: else it would
 * wait for the end of a time slice, some 4 ms. Without effect where the system does not allow it.
 */
export const runFirst = (pid: number): void => {
  if (pins && cores.length === 2) spawnSync('chrt', ['--all-tasks', '--fifo', '--pid', '1', String(pid)])
}

const ticksPerSecond = 100

/** Processor time of a process and its children so far, in seconds; the resolution is 10 ms. */
export const cpuSecondsOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name in brackets may hold anything; user and system time are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ofChildren = await Promise.all(childrenOf(pid).map(cpuSecondsOf))
  return sum([(Number(fields[11]) + Number(fields[12])) / ticksPerSecond, ...ofChildren])
}

/** Time that a core was busy so far, in seconds, with any process; 0 where the system does not report it. */
export const busySecondsOf = async (core: string): Promise<number> => {
  const stat = await readFile('/proc/stat', 'utf8')
  const fields = new RegExp(`^cpu${core} (.+)$`, 'm').exec(stat)?.[1]?.split(' ').map(Number) ?? []
  // Idle and iowait are the 4th and 5th field; guest time is included in the first two.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond
}

/** Empties the file that a process writes its log to: that of minutes would be gigabytes. */
export const emptyOutputOf = (pid: number): Promise<void> => truncate(`/proc/${pid}/fd/1`).catch(() => {})

/** Of a Redis: its processor time in seconds and its commands so far, including those within scripts, and its memory in bytes. */
export type RedisCost = Readonly<Record<'cpuSeconds' | 'commands' | 'usedMemory', number>>

/** Each reading is a command itself. */
export const readerOfRedis = (scope: Teardown, redisUrl: string): (() => Promise<RedisCost>) => {
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.disconnect())
  return async () => {
    const text = await redis.info()
    const of = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1])
    const cpuSeconds = await cpuSecondsOf(of('process_id'))
    return { cpuSeconds, commands: of('total_commands_processed'), usedMemory: of('used_memory') }
  }
}

/** Processor time of all children of this process that have ended, in seconds. */
export const cpuOfChildren = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}
