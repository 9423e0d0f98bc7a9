// The product's commands as processes, for tests of whole processes. Every process ends with the test that started it.

import type { ChildProcess, ForkOptions, SpawnOptions, StdioOptions } from 'node:child_process'
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { constantsPreload } from './constants.ts'
import { keyForm, onFreePorts } from './gateway-env.ts'
import { without } from './programs.ts'
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

/** Few places for commands that serve or compute answers. */
const placesFor = ([command = '']: readonly string[]): Record<string, string> =>
  ['serve', 'whatif', 'rehearse'].includes(command) ? { ABOHAWA_CATALOGUE__PATH: usualCatalogue } : {}

/** Starts a program whose output a test reads while it runs; it ends with the test. */
export const spawnProgram = (
  t: Teardown,
  [program = '', ...args]: readonly string[],
  options: SpawnOptions = {},
) => {
  const child = spawn(program, args, { env: cleanEnv(), ...options })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', text => {
      said[name] += text
    })
  const codeAt = (event: string) => once(child, event).then(([code]) => code as number | null)
  /** The exit code, or null after a signal: when it has ended, and when all that it said is read too. */
  const [exited, closed] = [codeAt('exit'), codeAt('close')]
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  })
  return { child, said, exited, closed }
}

/** Runs a program to its end. */
export const runProgram = async (t: Teardown, words: readonly string[], options: SpawnOptions = {}) => {
  const { said, closed } = spawnProgram(t, words, options)
  return { code: await closed, ...said }
}

/** What a program prints until its end. @throws Error when it fails */
export const outputOf = async (t: Teardown, words: readonly string[], options: SpawnOptions = {}) => {
  const { code, stdout, stderr } = await runProgram(t, words, options)
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
  return stdout
}

/** Starts a program with nothing to read; resolves when it has logged a line, and the addresses of the named listeners. */
export const startProgram = async (
  t: Teardown,
  words: readonly string[],
  listeners: readonly string[],
  options: SpawnOptions = {},
) => {
  const lines: string[] = []
  t.teardown(() => {
    const shown = words.includes('serve') && [...lines, started.said.stderr].find(text => keyForm.test(text))
    if (shown) throw new Error(`a gateway wrote a key: ${shown.slice(0, 500)}`)
  })
  const started = spawnProgram(t, words, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  const { child, said, exited } = started
  /** Base addresses by listener: `api`, `ops`, `provider`. */
  const urls: Record<string, string> = {}
  let late: NodeJS.Timeout | undefined
  await new Promise<void>((resolve, reject) => {
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', line => {
        lines.push(line)
        const entry = line.startsWith('{') ? JSON.parse(line) : {}
        if (entry.msg === 'listening') urls[entry.listener] = entry.url
        if (listeners.every(listener => urls[listener])) resolve()
      })
    const failed = (how: string) => reject(new Error(`${words.join(' ')} ${how}: ${said.stderr}`))
    late = setTimeout(failed, patienceMs, `does not listen after ${patienceMs} ms`)
    void exited.then(code => failed(`ended with ${code}`))
  }).finally(() => clearTimeout(late))
  return { ...started, urls, lines }
}
export type Running = Awaited<ReturnType<typeof startProgram>>

/** Starts a long-running command, a gateway with few places, and waits until the named listeners have logged their addresses. */
export const startCommand = (
  t: Teardown,
  args: readonly string[],
  listeners: readonly string[],
  env: Record<string, string> = {},
): Promise<Running> =>
  startProgram(t, [product, ...args], listeners, { env: cleanEnv({ ...placesFor(args), ...env }) })

/** A gateway with limited memory and all places: a test that fills memory must not exhaust the machine. */
export const startLimited = (
  t: Teardown,
  dataBytes: number,
  env: Record<string, string>,
  options: SpawnOptions = {},
): Promise<Running> =>
  startProgram(t, ['prlimit', `--data=${dataBytes}`, product, 'serve'], ['api', 'ops'], {
    env: cleanEnv(env),
    ...options,
  })

/** For tests that bound a process with prlimit of util-linux: false, or why they are skipped. */
export const withoutPrlimit = without('prlimit of util-linux', 'prlimit', '--version')

/** Of a gateway with few places and without a provider, on free ports. */
export const bareEnv = {
  ...onFreePorts,
  ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:1',
  ABOHAWA_CATALOGUE__PATH: usualCatalogue,
}

/** Starts that gateway in a folder, with nothing to keep, for tests of its log, whose streams the test chooses. */
export const spawnServe = (t: Teardown, cwd: string, stdio: StdioOptions, env: Record<string, string> = {}) =>
  spawnProgram(t, [product, 'serve'], {
    ...{ cwd, stdio },
    env: cleanEnv({ ...bareEnv, ABOHAWA_STORE__PATH: ':memory:', ...env }),
  })

export type Ended = { code: number; stdout: string; stderr: string }

/** Runs a command to its end in a separate process, as its users do. */
const runProcess = async (args: readonly string[], env: Record<string, string>): Promise<Ended> => {
  const ended = await runProgram({ teardown: () => {} }, [product, ...args], { env: cleanEnv(env) })
  return { ...ended, code: ended.code ?? -1 }
}

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

/** A process for the commands of a test file that are given in a folder, with limited memory where that is given. */
export const commandServerIn = (t: Teardown, cwd: string, dataBytes?: number): Pick<CommandServer, 'run'> => {
  const limited = { execPath: 'prlimit', execArgv: [`--data=${dataBytes}`, process.execPath] }
  const server = createCommandServer({ cwd, ...(dataBytes !== undefined && limited) })
  t.teardown(server.stop)
  return server
}

// Such a process reads its environment for more than settings, or lives on.
const needsProcess = (args: readonly string[], env: Record<string, string>): boolean =>
  ['serve', 'demo', 'provider'].includes(args[0] ?? '') ||
  Object.keys(env).some(name => !name.startsWith('ABOHAWA_'))

/** Runs a command to its end, as its users do or in the process that the commands of a test file share. */
export const runCommand = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
  needsProcess(args, env) ? runProcess(args, env) : runShared(args, env)

/** Runs a command to its end after the others of the test file, in one process: only the first one waits for its start. */
export const runShared = shared.run
