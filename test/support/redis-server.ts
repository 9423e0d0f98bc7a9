// A real Redis for a test: the one in ABOHAWA_TEST_REDIS_URL, where every caller gets a prefix of its own, so that tests on one server
// do not interfere; or a separate process on loopback, whose arguments decide its role.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import { freePort } from './listening.ts'
import { without } from './programs.ts'
import type { Teardown } from './teardown.ts'

/** For tests that end and start their own server: false, or why they are skipped. */
export const withoutOwnRedis = without(
  'redis-server on the path, to stop and start it',
  ...['redis-server', '--version'],
)

/** Of gateways whose Redis is well: a busy machine must not look like its outage. */
export const patientRedisEnv = {
  ABOHAWA_REDIS__COMMAND_TIMEOUT: '1m',
  ABOHAWA_TEST_REDIS__CONNECT_TIMEOUT: '1m',
} as const

export type TestRedis = {
  url: string
  prefix: string
  env: { [name: `ABOHAWA_${'' | 'TEST_'}REDIS__${string}`]: string }
}

export const testRedis = async (t: Teardown): Promise<TestRedis> => {
  const prefix = `test-${process.pid}-${Math.random().toString(36).slice(2)}:`
  const url = process.env.ABOHAWA_TEST_REDIS_URL || (await startRedis(t)).url
  return { url, prefix, env: { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__PREFIX: prefix, ...patientRedisEnv } }
}

export type RedisProcess = {
  port: number
  /** Of its first start. */
  pid: number
  /** `127.0.0.1:port`. */
  address: string
  url: string
  /** A connection of the test itself. */
  admin: Redis
  signal(name: NodeJS.Signals): void
  /** Kills it at once, as if the machine had failed, and waits for its end. */
  kill(): Promise<void>
  /** Starts it again after a kill, on the same port and with the same files. @param args beside those of its first start */
  start(args?: readonly string[]): Promise<void>
}

type Setting = {
  port?: number
  /** Further arguments of redis-server. */
  args?: readonly string[]
  /** The lines of a configuration file, which Sentinel requires. */
  config?: readonly string[]
  password?: string
}

/** Arguments of one that keeps a file, as operators run it. */
export const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec']

/** Starts one that ends with the test; ready when it says so. */
export const startRedis = async (
  t: Teardown,
  { port: given, args = [], config, password }: Setting = {},
): Promise<RedisProcess> => {
  const port = given ?? (await freePort())
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-redis-'))
  const file = join(folder, 'redis.conf')
  if (config) await writeFile(file, `${config.join('\n')}\n`)
  const asSentinel = config ? [file, '--sentinel'] : []
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  let child: ChildProcess
  let exited: Promise<unknown>
  const begin = async (more: readonly string[] = []): Promise<number> => {
    const all = [...asSentinel, ...common, ...args, ...more]
    const started = spawn('redis-server', all, { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    exited = once(started, 'exit')
    for await (const line of createInterface({ input: started.stdout }))
      if (/Ready to accept connections|Sentinel ID is/.test(line)) break
    started.stdout.resume()
    return started.pid ?? 0
  }
  const pid = await begin()
  const admin = new Redis({ port, ...(password && { password }) })
  admin.on('error', () => {})
  const kill = async (): Promise<void> => {
    admin.disconnect()
    child.kill('SIGKILL')
    await exited
  }
  t.teardown(async () => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  })
  const address = `127.0.0.1:${port}`
  return {
    ...{ port, pid, address, url: `redis://${address}`, admin, kill },
    signal: name => void child.kill(name),
    start: async more => {
      await begin(more)
      await admin.connect()
    },
  }
}
