// The settings of a gateway process on its own embedded store, which commands of the same settings reach, and keys of it.

import { join } from 'node:path'
import type { Test } from 'tap'
import { runCommand } from './process.ts'
import { freePort } from './redis-server.ts'

export const singleGatewayEnv = async (
  t: Pick<Test, 'testdir'>,
  providerUrl: string,
  more: Record<string, string> = {},
) => ({
  ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: String(await freePort()),
  ABOHAWA_PROVIDER__BASE_URL: providerUrl,
  ...more,
})

/** Creates a key of the free tier with the command of the product. */
export const createFreeKey = async (env: Record<string, string>): Promise<string> => {
  const args = ['--create-store', '--subscriber', 'A', '--tier', 'free', '--json']
  const { stdout } = await runCommand(['keys', 'create', ...args], env)
  return JSON.parse(stdout).key
}
