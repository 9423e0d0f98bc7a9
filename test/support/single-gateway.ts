// The settings of a gateway process on its own embedded store, which commands of the same settings reach.

import { join } from 'node:path'
import type { Test } from 'tap'
import { onFreePorts } from './gateway-env.ts'
import { freePort } from './redis-server.ts'

export const singleGatewayEnv = async (
  t: Pick<Test, 'testdir'>,
  providerUrl: string,
  more: Record<string, string> = {},
) => ({
  ...onFreePorts,
  ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
  ABOHAWA_OPS__PORT: String(await freePort()),
  ABOHAWA_PROVIDER__BASE_URL: providerUrl,
  ...more,
})
