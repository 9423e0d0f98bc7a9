// `abohawa doctor`: checks everything that a gateway of this configuration needs, and reports the state of each. Runs
// beside a serving gateway or without one. The checks are in the files beside this one.

import { existsSync } from 'node:fs'
import { createBudgetAdmin } from '../admin/budget-admin.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../stores/open-store.ts'
import type { Store } from '../stores/store.ts'
import { openBudget } from '../upstream/account.ts'
import { attempted, type Check, ok, skip } from './check.ts'
import { catalogueCheck, certificateCheck, embeddedChecks } from './files.ts'
import { tiersCheck } from './keys.ts'
import {
  migrationCheck,
  migrationSetting,
  nodeCheck,
  openFilesCheck,
  openFilesLimit,
  portChecks,
  proxyCheck,
  urlCheck,
} from './machine.ts'
import { budgetCheck, keyCheck, reachableChecks } from './provider.ts'
import { redisChecks } from './redis.ts'

export type DoctorOptions = {
  readonly clock: Clock
  /** Whether one point may be loaded from the provider. */
  readonly spend: boolean
  /** Where consumers reach the gateway, such as `https://weather.example`. */
  readonly url: string | undefined
  /** How many gateways share the port. */
  readonly processes: number
  /** The version of Node, such as `26.1.0`. */
  readonly nodeVersion: string
}

/** All checks, in the order in which they are read. Never rejects. */
export const examine = async (config: Config, options: DoctorOptions): Promise<readonly Check[]> => {
  const { clock, spend, url, processes, nodeVersion } = options
  const isEmbedded = config.redis.url === null
  const host = url === undefined ? undefined : URL.parse(url)?.hostname
  // Alone: reading it takes the processor, which would show as latency.
  const catalogue = await catalogueCheck(config.catalogue)
  const found = await Promise.all([
    [ok('config', 'every setting is valid'), nodeCheck(nodeVersion)],
    attempted('open files', 'Run it where sh is on the PATH.', async () => [
      openFilesCheck(await openFilesLimit(), config),
    ]),
    processes > 1 || config.server.reusePort ? [migrationCheck(migrationSetting())] : [],
    attempted('ports', 'Check server, ops and health in the configuration.', () => portChecks(config)),
    [certificateCheck(config.server, host, clock.now()), proxyCheck(config)],
    url === undefined
      ? [skip('public URL', 'not tried: give --url https://… as consumers reach it')]
      : [urlCheck(url)],
    [catalogue],
    isEmbedded ? embeddedChecks(config.store.path) : redisChecks(config, clock),
    attempted('provider', 'Check provider in the configuration.', () => reachableChecks(config, clock)),
  ])
  const before = (await Promise.all(found.flat())) as Check[]
  const store = before.find(({ name }) => name === 'store' || name === 'redis')
  const provider = before.find(({ name }) => name === 'provider')
  return [
    ...before,
    ...(await spendingChecks(config, clock, {
      notSpent: !spend
        ? 'not tried, so that nothing is spent'
        : provider?.status === 'fail'
          ? 'not tried, because the provider is away'
          : undefined,
      storeIsWell: store?.status !== 'fail',
    })),
  ]
}

/** @param notSpent why no point is loaded; undefined where one may be */
const spendingChecks = async (
  config: Config,
  clock: Clock,
  { notSpent, storeIsWell }: { notSpent: string | undefined; storeIsWell: boolean },
): Promise<readonly Check[]> => {
  const { redis, store: file } = config
  // Nothing is counted yet, and a check must not create the store.
  if (redis.url === null && !existsSync(file.path))
    return [
      notSpent === undefined ? await keyCheck(config, clock) : skip('provider key', notSpent),
      ok('budget', 'nothing is counted yet'),
      ok('tiers', 'there are no keys yet'),
    ]
  if (!storeIsWell)
    return [
      skip('provider key', 'not tried: its weight can not be counted'),
      skip('budget', 'not known'),
      skip('tiers', 'not known'),
    ]
  return attempted('budget', 'Check the store.', async () => {
    const store: Store = await openStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
    try {
      const observer = { storeAway: () => {}, storeBack: () => {}, reopened: () => {} }
      const budget = openBudget(config, { store, clock, instances: () => undefined, observer })
      await budget.reconcile()
      const key =
        notSpent === undefined ? await keyCheck(config, clock, budget) : skip('provider key', notSpent)
      return [
        key,
        budgetCheck(await createBudgetAdmin(config, { store, clock }).show()),
        await tiersCheck(store, config.quota),
      ]
    } finally {
      await store.close()
    }
  })
}
