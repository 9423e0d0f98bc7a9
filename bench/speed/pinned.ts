// Pins processes to cores: the measured process to one core, everything else to the others. Starts processes on a core,
// reads their processor time, and ends them with the row.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { until } from '../../test/support/until.ts'

/** Cores that this process may use, by number. */
const allowedCores = (): number[] => {
  const affinity = spawnSync('taskset', ['-cp', String(process.pid)]).stdout?.toString() ?? ''
  const list = /: ([\d,-]+)\s*$/.exec(affinity)?.[1] ?? ''
  return list
    .split(',')
    .filter(Boolean)
    .flatMap(part => {
      const [from = 0, to = from] = part.split('-').map(Number)
      return Array.from({ length: to - from + 1 }, (_, i) => from + i)
    })
}

const cores = allowedCores()

/** False without taskset or with a single core: then the kernel decides where everything runs. */
export const pins = cores.length > 1
export const coreCount = pins ? cores.length : availableParallelism()

/** Cores of the measured processes: the first for one, the second for another beside it. */
export const serverCores = [String(cores[0]), String(cores[1])] as const
/** Cores of callers, Redis, provider and this process. */
export const loadCores = cores.slice(1).join(',')
/** The same while two processes are measured; undefined where no core is left. */
export const loadCoresBesideTwo = cores.length > 2 ? cores.slice(2).join(',') : undefined

/** Moves this process, and all that it starts from now on, away from the measured core. */
export const stepAside = (to = loadCores): void => {
  if (pins) spawnSync('taskset', ['-a', '-cp', to, String(process.pid)])
}

/** The command line that runs a command on these cores. */
export const onCores = (list: string, command: string, args: readonly string[]): [string, string[]] =>
  pins ? ['taskset', ['-c', list, command, ...args]] : [command, [...args]]

export type Spawned = {
  readonly child: ChildProcess
  /** File of its standard output; it may be emptied at any time. */
  readonly output: string
}

export type Pinned = Spawned & {
  /** Base addresses by listener. */
  readonly urls: Readonly<Record<string, string>>
  /** Ends the process and starts another on the same port, whose child and output are then those here. */
  restart(): Promise<void>
}

const cleanEnv = (more: Env): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('ABOHAWA_') && name !== 'NODE_OPTIONS'),
  ),
  NODE_ENV: 'production',
  ...more,
})

let started = 0

/** Starts a command with its output in a file of the folder. */
export const spawnPinned = (
  scope: Scope,
  folder: string,
  core: string,
  [command, ...args]: readonly [string, ...string[]],
  env: Env = {},
): Spawned => {
  const output = join(folder, `output-${started++}.log`)
  // Opened for appending, so that the file can be emptied while the process writes.
  const file = openSync(output, 'a')
  const [program, all] = onCores(core, command, args)
  const child = spawn(program, all, { env: cleanEnv(env), stdio: ['ignore', file, file] })
  const exited = once(child, 'exit')
  scope.teardown(() => endOf(child, exited))
  return { child, output }
}

/** Ends a process, by force after five seconds. */
export const endOf = async (
  child: ChildProcess,
  exited: Promise<unknown> = once(child, 'exit'),
): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
  else return
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(late)
}

/** Starts a command and waits until its output has the addresses of the named listeners. */
export const startPinned = async (
  scope: Scope,
  folder: string,
  core: string,
  command: readonly [string, ...string[]],
  listeners: readonly string[],
  env: Env = {},
): Promise<Pinned> => {
  const urls: Record<string, string> = {}
  const begin = async (own: Env): Promise<Spawned> => {
    const spawned = spawnPinned(scope, folder, core, command, own)
    const { child, output } = spawned
    const listening = new Set<string>()
    await until(`${command.join(' ')} listens`, async () => {
      const text = await readFile(output, 'utf8')
      if (child.exitCode !== null) return true
      for (const line of text.split('\n').filter(one => one.includes('"listening"'))) {
        const entry = JSON.parse(line) as { listener: string; url: string }
        urls[entry.listener] = entry.url
        listening.add(entry.listener)
      }
      return listeners.every(listener => listening.has(listener))
    })
    if (child.exitCode === null) return spawned
    throw new Error(`${command.join(' ')} ended with ${child.exitCode}: ${await readFile(output, 'utf8')}`)
  }
  let current = await begin(env)
  return {
    get child() {
      return current.child
    },
    get output() {
      return current.output
    },
    urls,
    restart: async () => {
      await endOf(current.child)
      const { port } = new URL(urls.api ?? '')
      // A gateway reads the one, servers/ the other.
      current = await begin({ ...env, ABOHAWA_SERVER__PORT: port, PORT: port })
    },
  }
}

/**
 * Lets a process run as soon as it has something to do, where it shares its core with a load that never rests: else it would
 * wait for the end of a time slice, some 4 ms. Without effect where the system does not allow it.
 */
export const runFirst = (pid: number): void => {
  if (pins && coreCount === 2) spawnSync('chrt', ['--all-tasks', '--fifo', '--pid', '1', String(pid)])
}

/**
 * The command line that has the kernel prefer a command from its start: a caller whose clock is the measure, beside others. By its
 * share of the time, not before all else: it would wait for a thread of its own for good.
 */
export const inFront = (command: string, args: readonly string[]): [string, string[]] => [
  'nice',
  ['-n', '-15', command, ...args],
]

const ticksPerSecond = 100

/** Processor time of a process and its children so far, in seconds; the resolution is 10 ms. */
export const cpuSecondsOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name in brackets may hold anything; user and system time are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean)
  const ofChildren = await Promise.all(children.map(child => cpuSecondsOf(Number(child))))
  return ofChildren.reduce(
    (sum, seconds) => sum + seconds,
    (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
  )
}

/** Time that a core was busy so far, in seconds, with any process; 0 where the system does not report it. */
export const busySecondsOf = async (core: string): Promise<number> => {
  const stat = await readFile('/proc/stat', 'utf8')
  const fields = new RegExp(`^cpu${core} (.+)$`, 'm').exec(stat)?.[1]?.split(' ').map(Number) ?? []
  // Idle and iowait are the 4th and 5th field; guest time is included in the first two.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond
}

/** Resident memory in MiB: now, and the maximum so far. */
export const residentOf = async (pid: number): Promise<{ now: number; most: number }> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
  return { now: of('VmRSS'), most: of('VmHWM') }
}
