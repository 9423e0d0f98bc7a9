// The product's commands as processes, for tests of whole processes. Every process ends with the test that started it.

import type { ChildProcess, ChildProcessByStdio, ForkOptions, StdioOptions } from 'node:child_process'
import { execFile, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { constantsPreload } from './constants.ts'
import { keyForm } from './key-form.ts'
import type { Teardown } from './teardown.ts'
import { patienceMs } from './until.ts'
import { usualCatalogue } from './usual-catalogue.ts'

/** The command of the product, as its users start it. */
export const product = new URL('../../bin/abohawa', import.meta.url).pathname
const serverScript = new URL('command-server.ts', import.meta.url).pathname

/** The environment without settings of this machine, so that only those of the test apply. */
export const cleanEnv = (more: Record<string, string> = {}): NodeJS.ProcessEnv => {
  const preload = constantsPreload(more)
  return {
    ...Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('ABOHAWA_') && name !== 'NODE_OPTIONS'),
    ),
    ...(preload && { NODE_OPTIONS: preload }),
    ...more,
  }
}

export type Running = {
  child: ChildProcess
  /** Base addresses by listener: `api`, `ops`, `provider`. */
  urls: Record<string, string>
  /** All lines of standard output so far. */
  lines: string[]
  /** Resolves with the exit code, or null after a signal. */
  exited: Promise<number | null>
}

/** Few places for commands that serve or compute answers. */
const placesFor = ([command = '']: readonly string[]): Record<string, string> =>
  ['serve', 'whatif', 'rehearse'].includes(command) ? { ABOHAWA_CATALOGUE__PATH: usualCatalogue } : {}

/** What a start waits for, its environment, and whether the process and this one can send each other messages. */
type StartOptions = [listeners: readonly string[], env?: Record<string, string>, hasChannel?: boolean]

/** Starts a long-running command, a gateway with few places, and waits until the named listeners have logged their addresses. */
export const startCommand = (
  t: Teardown,
  args: readonly string[],
  listeners: readonly string[],
  env: Record<string, string> = {},
): Promise<Running> => start(t, product, args, listeners, { ...placesFor(args), ...env })

/** The same with limited memory and all places: a test that fills memory must not exhaust the machine. */
export const startLimited = (
  t: Teardown,
  dataBytes: number,
  args: readonly string[],
  ...options: StartOptions
): Promise<Running> => start(t, 'prlimit', [`--data=${dataBytes}`, product, ...args], ...options)

/** The same with a script of the tests in place of the product's command line. */
export const startScript = (
  t: Teardown,
  script: string,
  args: readonly string[],
  ...options: StartOptions
): Promise<Running> => start(t, process.execPath, [script, ...args], ...options)

/** Peak resident memory of a process so far, in MiB; only on Linux. */
export const peakOf = ({ pid }: ChildProcess): number => {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

/** For tests that bound a process with prlimit of util-linux: false, or why they are skipped. */
export const withoutPrlimit: string | false =
  spawnSync('prlimit', ['--version']).status === 0 ? false : 'needs prlimit of util-linux'

const start = async (
  t: Teardown,
  command: string,
  args: readonly string[],
  ...[listeners, env = {}, hasChannel = false]: StartOptions
): Promise<Running> => {
  const child = spawn(command, args, {
    env: cleanEnv(env),
    stdio: ['ignore', 'pipe', 'pipe', ...(hasChannel ? ['ipc' as const] : [])],
  }) as ChildProcessByStdio<null, Readable, Readable>
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
    const shown = args.includes('serve') && [...lines, errors].find(text => keyForm.test(text))
    if (shown) throw new Error(`a gateway wrote a key: ${shown.slice(0, 500)}`)
  })
  const urls: Record<string, string> = {}
  const lines: string[] = []
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    errors += text
  })
  let late: NodeJS.Timeout | undefined
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', line => {
      lines.push(line)
      const entry = line.startsWith('{') ? JSON.parse(line) : {}
      if (entry.msg === 'listening') urls[entry.listener] = entry.url
      if (listeners.every(listener => urls[listener])) resolve()
    })
    const failed = (how: string) => reject(new Error(`${args.join(' ')} ${how}: ${errors}`))
    late = setTimeout(failed, patienceMs, `does not listen after ${patienceMs} ms`)
    void exited.then(code => failed(`ended with ${code}`))
  }).finally(() => clearTimeout(late))
  return { child, urls, lines, exited }
}

/** Starts the gateway in a folder without provider and store, for tests of its log, whose streams the test chooses. */
export const spawnServe = (
  t: Teardown,
  cwd: string,
  stdio: StdioOptions,
  env: Record<string, string> = {},
): { child: ChildProcess; exited: Promise<unknown[]> } => {
  const child = spawn(product, ['serve'], {
    cwd,
    env: cleanEnv({
      ABOHAWA_SERVER__PORT: '0',
      ABOHAWA_SERVER__DRAIN_FOR: '0s',
      ABOHAWA_OPS__PORT: '0',
      ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:1',
      ABOHAWA_STORE__PATH: ':memory:',
      ABOHAWA_CATALOGUE__PATH: usualCatalogue,
      ...env,
    }),
    stdio,
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { child, exited }
}

/** Starts a command that a test reads and stops while it runs; under another program where one is given. */
export const spawnCommand = (
  t: Teardown,
  args: readonly string[],
  { env = {}, program = product }: { env?: Record<string, string>; program?: string } = {},
) => {
  const child = spawn(program, args, { env: cleanEnv(env) })
  t.teardown(() => child.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', text => {
      said[name] += text
    })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  return { child, said, exited }
}

export type Ended = { code: number; stdout: string; stderr: string }

/** Runs a command to its end in a separate process, as its users do. */
const runProcess = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
  new Promise(resolve => {
    execFile(product, args, { env: cleanEnv(env), maxBuffer: 1e8 }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr })
    })
  })

type CommandServer = {
  /** Runs a command to its end after those before it. */
  run(args: readonly string[], env?: Record<string, string>): Promise<Ended>
  stop(): void
}

/** One process for many commands, which starts with the first of them. */
const createCommandServer = (options: ForkOptions): CommandServer => {
  const pending = new Map<number, (ended: Ended) => void>()
  let server: ChildProcess | undefined
  let sent = 0
  const start = (): ChildProcess => {
    const stdio: StdioOptions = ['ignore', 'ignore', 'inherit', 'ipc']
    const child = fork(serverScript, { env: cleanEnv(), execArgv: [], stdio, ...options })
    child.on('message', ({ id, ...ended }: Ended & { id: number }) => {
      pending.get(id)?.(ended)
      pending.delete(id)
      // An idle one does not keep the test running.
      if (pending.size === 0) child.channel?.unref()
    })
    child.on('exit', code => {
      server = undefined
      for (const end of pending.values())
        end({ code: -1, stdout: '', stderr: `the command server ended: ${code}` })
      pending.clear()
    })
    child.unref()
    return child
  }
  return {
    run: (args, env = {}) => {
      server ??= start()
      sent += 1
      const [child, id] = [server, sent]
      return new Promise(resolve => {
        pending.set(id, resolve)
        child.channel?.ref()
        child.send({ id, args, env: cleanEnv({ ...placesFor(args), ...env }) })
      })
    },
    stop: () => void server?.kill('SIGKILL'),
  }
}

const shared = createCommandServer({})

const serverFor = (t: Teardown, options: ForkOptions): Pick<CommandServer, 'run'> => {
  const server = createCommandServer(options)
  t.teardown(server.stop)
  return server
}

/** A process for the commands of a test file that are given in a folder; ends with the test. */
export const commandServerIn = (t: Teardown, cwd: string) => serverFor(t, { cwd })

/** The same with limited memory. */
export const limitedCommandServer = (t: Teardown, dataBytes: number, cwd: string) =>
  serverFor(t, { cwd, execPath: 'prlimit', execArgv: [`--data=${dataBytes}`, process.execPath] })

// Such a process reads its environment for more than settings, or lives on.
const needsProcess = (args: readonly string[], env: Record<string, string>): boolean =>
  ['serve', 'demo', 'provider'].includes(args[0] ?? '') ||
  Object.keys(env).some(name => !name.startsWith('ABOHAWA_'))

/** Runs a command to its end, as its users do or in the process that the commands of a test file share. */
export const runCommand = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
  needsProcess(args, env) ? runProcess(args, env) : runShared(args, env)

/** Runs a command to its end after the others of the test file, in one process: only the first one waits for its start. */
export const runShared = shared.run
