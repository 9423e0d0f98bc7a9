// One redis-server process on loopback; its arguments decide its role. Ready when it says so. Its folder is removed when the
// process ends.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import { freePort } from './redis-server.ts'

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
  port?: number
  /** Further arguments of redis-server. */
  args?: string[]
  /** The lines of a configuration file, which Sentinel requires. */
  config?: string[]
  password?: string
}

export const startRedisProcess = async ({
  port: given,
  args = [],
  config,
  password,
}: Setting = {}): Promise<RedisProcess> => {
  const port = given ?? (await freePort())
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-redis-'))
  const file = join(folder, 'redis.conf')
  if (config) await writeFile(file, `${config.join('\n')}\n`)
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  let child: ChildProcess
  let exited: Promise<unknown>
  const start = async (more: readonly string[] = []): Promise<void> => {
    const started = spawn(
      'redis-server',
      [...(config ? [file, '--sentinel'] : []), ...common, ...args, ...more],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    child = started
    exited = once(started, 'exit')
    for await (const line of createInterface({ input: started.stdout })) {
      if (/Ready to accept connections|Sentinel ID is/.test(line)) break
    }
    started.stdout.resume()
  }
  await start()
  const admin = new Redis({ port, ...(password && { password }) })
  admin.on('error', () => {})
  const end = async (signal: NodeJS.Signals) => {
    admin.disconnect()
    child.kill('SIGCONT')
    child.kill(signal)
    await exited
  }
  return {
    port,
    address: `127.0.0.1:${port}`,
    admin,
    signal: name => child.kill(name),
    kill: () => end('SIGKILL'),
    start: async more => {
      await start(more)
      await admin.connect()
    },
    stop: async () => {
      await end('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
