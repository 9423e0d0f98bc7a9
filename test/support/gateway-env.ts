// Variables that many gateways of tests have, and what none of them may print.

import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './listening.ts'

/** The form of an API key. Tests present keys to every gateway that they start. */
export const keyForm = /svc_(?:live|test)_[0-9A-Za-z]{38}/

/** Listeners on free ports, and an end that waits for no balancer. */
export const onFreePorts = {
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
}

/** No limits of the provider. */
export const noBudget = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}

export const plentyOfQuota = { ABOHAWA_QUOTA__TIERS__ENTERPRISE: '1000000000' }

/** Of a process on its own embedded store, which commands of the same settings reach. */
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
