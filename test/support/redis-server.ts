// A real Redis for a test: the one in ABOHAWA_TEST_REDIS_URL, or a process of its own on a free port. Every caller gets a
// prefix of its own, so that tests on one server do not interfere.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'

const found = spawnSync('redis-server', ['--version']).status === 0

/** For tests that end and start a server of their own: false, or why they are skipped. */
export const withoutOwnRedis: string | false = found
  ? false
  : 'needs redis-server on the path, to stop and start it'

export type TestRedis = { url: string; prefix: string }

type Teardown = { teardown(fn: () => unknown): void }

export const testRedis = async (t: Teardown): Promise<TestRedis> => {
  const prefix = `test-${process.pid}-${Math.random().toString(36).slice(2)}:`
  const given = process.env.ABOHAWA_TEST_REDIS_URL
  if (given) return { url: given, prefix }
  const { url, stop } = await startRedis()
  t.teardown(stop)
  return { url, prefix }
}

/** A Redis process without persistence; on a free port unless one is given. */
export const startRedis = async (
  port?: number,
): Promise<{ url: string; port: number; pid: number; stop(): Promise<void> }> => {
  port ??= await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-redis-'))
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('Ready to accept connections')) break
  }
  child.stdout.resume()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    stop: async () => {
      const exited = child.exitCode === null && once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A Redis process for one test alone, and a client of the test beside the code under test. */
export const startRedisFor = async (t: Teardown): Promise<{ url: string; raw: Redis }> => {
  const { url, stop } = await startRedis()
  t.teardown(stop)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  return { url, raw }
}

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
