// Sockets that a parent process holds and passes to generations of the product, as systemd does.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { cleanEnv, product } from './process.ts'
import { until } from './until.ts'

type Teardown = { teardown(fn: () => unknown): void }

export type HeldSockets = {
  /** Where they listen, in the order they were given: `127.0.0.1:PORT` or a path. */
  readonly places: readonly string[]
  /** Starts the product and waits until its API is listened on; its process id, and the address it logs by listener. */
  start(): Promise<{ pid: number; urls: Record<string, string> }>
  /** Starts the product, which is to fail; what it says. */
  fail(): Promise<string>
  /** The lines of all generations. */
  readonly logged: readonly Record<string, unknown>[]
}

const script = new URL('socket-holder.py', import.meta.url).pathname

/** @param sockets `NAME=HOST` for a free port, `NAME=/PATH` for a Unix socket */
export const holdSockets = async (
  t: Teardown,
  sockets: readonly string[],
  env: Record<string, string>,
): Promise<HeldSockets> => {
  const holder: ChildProcess = spawn('python3', [script, ...sockets, '--', product, 'serve'], {
    env: cleanEnv(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = once(holder, 'exit')
  t.teardown(async () => {
    holder.stdin?.end()
    await ended
  })
  const logged: Record<string, unknown>[] = []
  let errors = ''
  holder.stderr?.setEncoding('utf8').on('data', text => {
    errors += text
  })
  createInterface({ input: holder.stdout as NodeJS.ReadableStream }).on('line', line => {
    logged.push(JSON.parse(line))
  })
  const has = (name: string, count: number) => () => logged.filter(line => name in line)[count]
  const first = await until('the sockets are held', has('places', 0))
  let generations = 0
  const spawnNext = async (): Promise<number> => {
    generations += 1
    holder.stdin?.write('\n')
    return Number((await until('a generation is started', has('pid', generations - 1)))?.pid)
  }

  return {
    places: first?.places as string[],
    logged,
    start: async () => {
      const before = logged.length
      const pid = await spawnNext()
      const listening = () => logged.slice(before).filter(({ msg }) => msg === 'listening')
      await until('the API is listened on', () => {
        if (errors !== '') throw new Error(errors)
        return listening().some(({ listener }) => listener === 'api')
      })
      return { pid, urls: Object.fromEntries(listening().map(({ listener, url }) => [listener, url])) }
    },
    fail: async () => {
      await spawnNext()
      return until('it says why', () => (errors.endsWith('\n') ? errors : undefined))
    },
  }
}
