// A real Redis for a test: the one in ABOHAWA_TEST_REDIS_URL, or a process of its own on a free port. Every caller gets a
// prefix of its own, so that tests on one server do not interfere.

import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
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
    { stdio: ['ignore', 'pipe', 'inherit'] },
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
