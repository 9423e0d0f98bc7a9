// One redis-server process on loopback; its arguments decide its role. Ready when it says so. Its folder is removed when the
// process ends.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import type { Teardown } from './teardown.ts'

export type RedisProcess = {
  port: number
  /** `127.0.0.1:port`. */
  address: string
  /** A connection of the test itself. */
  admin: Redis
  signal(name: NodeJS.Signals): void
  /** Kills it at once, as if the machine had failed, and waits for its end. */
  kill(): Promise<void>
  /** Starts it again after a kill, on the same port and with the same files. @param args beside those of its first start */
  start(args?: readonly string[]): Promise<void>
  stop(): Promise<void>
}

type Setting = {
  port?: number | undefined
  /** Further arguments of redis-server. */
  args?: string[]
  /** The lines of a configuration file, which Sentinel requires. */
  config?: string[]
  password?: string
}

/** The process alone, without a connection of the test. */
export const spawnRedis = async ({ port: given, args = [], config }: Setting) => {
  const port = given ?? (await freePort())
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-redis-'))
  const file = join(folder, 'redis.conf')
  if (config) await writeFile(file, `${config.join('\n')}\n`)
  const asSentinel = config ? [file, '--sentinel'] : []
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  let child: ChildProcess
  let exited: Promise<unknown>
  const start = async (more: readonly string[] = []): Promise<number> => {
    const all = [...asSentinel, ...common, ...args, ...more]
    const started = spawn('redis-server', all, { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    exited = once(started, 'exit')
    for await (const line of createInterface({ input: started.stdout }))
      if (/Ready to accept connections|Sentinel ID is/.test(line)) break
    started.stdout.resume()
    return started.pid ?? 0
  }
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  const stop = async (): Promise<void> => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  }
  const pid = await start()
  return { port, pid, signal: (name: NodeJS.Signals) => void child.kill(name), kill, start, stop }
}

export const startRedisProcess = async (setting: Setting = {}): Promise<RedisProcess> => {
  const { port, signal, kill, start, stop } = await spawnRedis(setting)
  const admin = new Redis({ port, ...(setting.password && { password: setting.password }) })
  admin.on('error', () => {})
  const ended = (end: () => Promise<void>) => () => {
    admin.disconnect()
    return end()
  }
  return {
    ...{ port, address: `127.0.0.1:${port}`, admin, signal, kill: ended(kill), stop: ended(stop) },
    start: async more => {
      await start(more)
      await admin.connect()
    },
  }
}

/** One that keeps a file, as operators run it; frozen it keeps its connections without responding. Ends with the test. */
export const startDurableRedis = async (t: Teardown) => {
  const redis = await startRedisProcess({ args: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })
  const { address, signal, stop } = redis
  t.teardown(stop)
  const [freeze, thaw] = [() => signal('SIGSTOP'), () => signal('SIGCONT')]
  return { ...redis, url: `redis://${address}`, freeze, thaw }
}

// Below the ports that a system hands out itself (from 32,768 on Linux, 49,152 elsewhere): between this check and the moment
// when a server of the test binds the port, no other server on port 0 and no client of a test can come by it.
const firstPort = 10_000
const portCount = 22_000

/**
 * A port that nothing listens on and that the system gives to nobody by itself.
 * @param count of ports from it on of which that holds
 */
export const freePort = async (count = 1): Promise<number> => {
  const first = firstPort + randomInt(portCount - count + 1)
  for (let port = first; port < first + count; port++) {
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      return freePort(count)
    }
    server.close()
    await once(server, 'close')
  }
  return first
}
