// A real Redis for a test: the one in ABOHAWA_TEST_REDIS_URL, or a separate process on a free port. Every caller gets a
// prefix of its own, so that tests on one server do not interfere.

import { spawnSync } from 'node:child_process'
import { Redis } from 'ioredis'
import { spawnRedis } from './redis-process.ts'
import type { Teardown } from './teardown.ts'

export { freePort } from './redis-process.ts'

const found = spawnSync('redis-server', ['--version']).status === 0

/** For tests that end and start their own server: false, or why they are skipped. */
export const withoutOwnRedis: string | false =
  !found && 'needs redis-server on the path, to stop and start it'

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
  let url = process.env.ABOHAWA_TEST_REDIS_URL
  if (!url) {
    const started = await startRedis()
    t.teardown(started.stop)
    url = started.url
  }
  return { url, prefix, env: { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__PREFIX: prefix, ...patientRedisEnv } }
}

/** A Redis process without persistence; on a free port unless one is given. */
export const startRedis = async (
  givenPort?: number,
): Promise<{ url: string; port: number; pid: number; stop(): Promise<void> }> => {
  const { port, pid, stop } = await spawnRedis({ port: givenPort })
  return { url: `redis://127.0.0.1:${port}`, port, pid, stop }
}

/** A Redis process for one test alone, and a client of the test beside the code under test. */
export const startRedisFor = async (t: Teardown): Promise<{ url: string; raw: Redis }> => {
  const { url, stop } = await startRedis()
  t.teardown(stop)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  return { url, raw }
}
