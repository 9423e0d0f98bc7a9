// `abohawa doctor`: checks everything that a gateway with this configuration needs, with or without a running one.

import { existsSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { namespaceOf } from '../../cache/entry-codec.ts'
import type { Clock } from '../../common/clock.ts'
import { safeText } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import { limitOfTier, type Tiers } from '../../keys/authentication.ts'
import { tiersOf } from '../../keys/test-keys.ts'
import { protocolIn } from '../../provider/account.ts'
import { openStore } from '../../stores/open-store.ts'
import type { KeyStore, Store } from '../../stores/store.ts'
import { budgetOfStore, createBudgetAdmin } from '../budget-admin.ts'
import { attempted, type Check, checkOf, type Finding, fail, ok, skip } from './check.ts'
import { catalogueFinding, certificateFindings, embeddedFindings, logFinding } from './files.ts'
import {
  migrationFinding,
  migrationSetting,
  openFilesFinding,
  openFilesLimit,
  portFindings,
} from './machine.ts'
import { budgetFinding, keyFinding, reachProvider } from './provider.ts'
import { proxyFinding, urlFinding } from './proxies.ts'
import { redisChecks } from './redis.ts'

export type DoctorOptions = {
  readonly clock: Clock
  readonly spend: boolean
  /** Where consumers reach the gateway, such as `https://weather.example`. */
  readonly url: string | undefined
  /** How many gateways share the port. */
  readonly processes: number
}

/** All checks, in the order in which they are read. Never rejects. */
export const examine = async (config: Config, options: DoctorOptions): Promise<readonly Check[]> => {
  const { clock, spend, url, processes } = options
  const host = url === undefined ? undefined : URL.parse(url)?.hostname
  const [files, ports, outside, catalogue, embedded, redis, provider] = await Promise.all([
    attempted('Run it where sh is on the PATH.', async () => [
      openFilesFinding(await openFilesLimit(), config),
    ]),
    attempted('Check server, ops and health in the configuration.', () => portFindings(config, processes)),
    url === undefined
      ? skip('the address of consumers was not tried: give it with --url https://…')
      : urlFinding(config, url),
    catalogueFinding(config.catalogue),
    config.redis.url === null ? embeddedFindings(config.store.path) : undefined,
    redisChecks(config, clock),
    reachProvider(config, clock),
  ])
  const stores = embedded ? [checkOf('store', embedded)] : redis.checks
  const { ofProvider, ofTiers, ofRecords } =
    stores[0]?.status === 'fail'
      ? {
          ofRecords: [],
          ofProvider: [skip("nothing was loaded, because its weight can't be counted")],
          ofTiers: [skip("unknown, because the store can't be used")],
        }
      : await withStore(config, clock, provider.found.status === 'fail' ? 'away' : spend ? 'load' : 'spare')
  return [
    checkOf('config', [ok('every setting is valid')]),
    // No older Node than is needed comes as far as here.
    checkOf('node', [ok(`version ${process.versions.node}`), ...files]),
    checkOf('ports', ports),
    ...(processes > 1 || config.server.reusePort
      ? [checkOf('restarts', [migrationFinding(migrationSetting())])]
      : []),
    checkOf('certificate', await certificateFindings(config.server, host, clock.now())),
    checkOf('proxies', [proxyFinding(config), outside]),
    checkOf('log', [logFinding(config.log)]),
    checkOf('catalogue', [catalogue]),
    ...stores,
    ...(ofRecords.length > 0 ? [checkOf('records', ofRecords)] : []),
    checkOf('clocks', [...redis.clock, ...provider.clock]),
    checkOf('provider', [provider.found, ...ofProvider]),
    checkOf('tiers', ofTiers),
  ]
}

type OfStore = Record<'ofProvider' | 'ofTiers' | 'ofRecords', readonly Finding[]>

/** What needs the store: a point from the provider, charged to the budget of the fleet, the budget, and the tiers of keys. */
const withStore = async (
  config: Config,
  clock: Clock,
  point: 'load' | 'spare' | 'away',
): Promise<OfStore> => {
  // A check must not make the store.
  const isThere = config.redis.url !== null || existsSync(config.store.path)
  const used = isThere ? config : { ...config, store: { path: ':memory:' } }
  let ofTiers: readonly Finding[] = [skip("unknown, because the store can't be used")]
  let ofRecords: readonly Finding[] = []
  const ofProvider = await attempted('Check the store.', async () => {
    const store = await openStore(used, clock, { redisAway: () => {}, redisBack: () => {} })
    try {
      ofRecords = await recordFindings(store, config)
      ofTiers = [await tiersFinding(store, tiersOf(config.quota))]
      const budget = budgetOfStore(config, { store, clock })
      await budget.reconcile()
      const loaded: readonly Finding[] =
        point === 'load'
          ? [await keyFinding(config, clock, budget)]
          : point === 'spare'
            ? [skip('no point was loaded, so that nothing is spent')]
            : []
      return [...loaded, budgetFinding(await createBudgetAdmin(config, { store, clock }).show())]
    } finally {
      await store.close()
    }
  })
  return { ofProvider, ofTiers, ofRecords }
}

/** The records that all gateways share and that can't be read: another program wrote there. */
const recordFindings = async (store: Store, { provider, ...config }: Config): Promise<readonly Finding[]> => {
  const reads = [
    () => store.changeRecordsAfter('keys', 0),
    () => store.changeRecordsAfter('purges', 0),
    () => store.aliveInstances(0),
    () => store.wanted(namespaceOf(provider.baseUrl, protocolIn({ provider, ...config })), 0),
  ]
  const fix =
    'Find the program that writes under redis.prefix, and delete that record: gateways write it again.'
  const found = await Promise.all(reads.map(read => attempted(fix, () => read().then(() => []))))
  return found.flat()
}

const keysRead = 500
const maxNamed = 5

/**
 * Keys whose requests get 500: not revoked, without a limit of their own, on a tier that is not configured. Reads every key, in parts,
 * and no count of any.
 */
const tiersFinding = async (
  store: Pick<KeyStore, 'countKeys' | 'listKeys'>,
  tiers: Tiers,
): Promise<Finding> => {
  const total = await store.countKeys()
  const missing = new Map<string, number>()
  for (let from = 0; from < total; from += keysRead) {
    for (const { tier, limit, revokedAt } of await store.listKeys(from, keysRead))
      if (revokedAt === null && limit === null && limitOfTier(tiers, tier) === undefined)
        missing.set(tier, (missing.get(tier) ?? 0) + 1)
    await nextTurn()
  }
  if (missing.size === 0)
    return ok(total === 0 ? 'there are no keys yet' : 'quota.tiers has the tier of every key')
  const count = [...missing.values()].reduce((sum, keys) => sum + keys, 0)
  const named = [...missing.keys()].slice(0, maxNamed).map(tier => safeText(tier, 40))
  const shown = [...named, ...(missing.size > maxNamed ? ['…'] : [])].join(', ')
  return fail(
    `${count === 1 ? '1 key is' : `${count.toLocaleString('en-US')} keys are`} on ${shown}, which quota.tiers does not have: a gateway that starts now answers ${count === 1 ? 'it' : 'them'} 500`,
    'Put the tier back into quota.tiers, or move the keys: npm run -s abohawa -- keys set ID --tier NAME',
  )
}
