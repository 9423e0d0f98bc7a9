// The system under attack: a gateway process, a real store, a provider process, and keys. A gateway that died is restarted on
// the same store, so that one fault does not hide the others.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, type Redis } from 'ioredis'
import { administerWith } from '../../src/cli/administer.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider-process.ts'
import { startCluster } from '../../test/support/redis-cluster.ts'
import { startRedisProcess } from '../../test/support/redis-process.ts'
import { masterName, startSentinel } from '../../test/support/redis-sentinel.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'

type Env = Readonly<Record<string, string>>
type Opening = Pick<AsyncDisposableStack, 'defer'>

/** An HTTP server in the provider's place. */
export type StandIn = { readonly url: string; close(): Promise<void> }

export type SystemSetting = {
  readonly env?: Env
  /** One Redis, if not given. */
  readonly store?: keyof typeof stores
  /** The text of a config file that the gateway reads, if it is to have one. */
  readonly configText?: string
  /** The number of keys besides the default one. */
  readonly moreKeys?: number
  /** The provider of the gateway; the provider process itself if not given. */
  readonly standIn?: (provider: ProviderProcess) => Promise<StandIn>
}

export type Key = { readonly id: string; readonly key: string; readonly limit: number }

export type System = {
  /** A connection that sees all records of the Redis. @throws Error with the embedded store */
  redis(): Redis
  readonly provider: ProviderProcess
  readonly standIn: StandIn | undefined
  /** A good key with a quota that no run uses up, then the additional ones. */
  readonly keys: readonly [Key, ...Key[]]
  readonly env: Env
  /** The config file of the gateway, where the setting has a text for it. */
  readonly configFile: string
  /** The gateway that runs now. */
  gateway(): GatewayProcess
  /** Another gateway of the same fleet, which ends with the system. */
  startAnother(): Promise<GatewayProcess>
  /** Starts a new process in place of the former one. */
  restart(): Promise<void>
  /** Stops the gateway gracefully. @throws Fault when it does not */
  stop(): Promise<void>
  /** Ends everything that was started. */
  close(): Promise<void>
}

export const prefix = 'fuzz:'
/** Of every key. */
export const dailyQuota = 1_000_000_000

const running = new Set<AsyncDisposableStack>()

/** Ends all started processes when the fuzzer itself has to end. */
export const closeAll = async (): Promise<void> => {
  await Promise.all([...running].map(stack => stack.disposeAsync()))
}

/** @throws Error when something does not start */
export const startSystem = async (setting: SystemSetting): Promise<System> => {
  const opened = new AsyncDisposableStack()
  running.add(opened)
  const close = async (): Promise<void> => {
    running.delete(opened)
    await opened.disposeAsync()
  }
  try {
    return await open(setting, opened, close)
  } catch (error) {
    await close()
    throw error
  }
}

const open = async (setting: SystemSetting, opened: Opening, close: () => Promise<void>): Promise<System> => {
  const scope = { teardown: (fn: () => unknown) => opened.defer(async () => void (await fn())) }
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-fuzz-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const store = await stores[setting.store ?? 'redis'](opened, folder)
  // Its weather never changes; its clock is the machine's, like the gateway's.
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const standIn = await setting.standIn?.(provider)
  if (standIn) opened.defer(standIn.close)

  const { configText } = setting
  const configFile = join(folder, 'gateway.yaml')
  const env = {
    ...(configText !== undefined && { ABOHAWA_CONFIG_FILE: configFile }),
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_SERVER__REQUEST_TIMEOUT: '5s',
    ABOHAWA_OPS__PORT: '0',
    ...store.env,
    ABOHAWA_REDIS__PREFIX: prefix,
    // Long timeouts: a busy machine must not look like a Redis outage.
    ABOHAWA_REDIS__COMMAND_TIMEOUT: '5s',
    ABOHAWA_PROVIDER__BASE_URL: standIn?.url ?? provider.url,
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
    ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
    ABOHAWA_QUOTA__TIERS__ENTERPRISE: String(dailyQuota),
    ABOHAWA_CATALOGUE__PATH: new URL('../../locations.json', import.meta.url).pathname,
    ...setting.env,
  }
  const [first, ...more] = await issueKeys(env, 1 + (setting.moreKeys ?? 0))
  if (!first) throw new Error('no key was made')
  const keys = [first, ...more] as const
  const secrets = keys.map(({ key }) => key.slice('svc_live_'.length))
  const start = async (): Promise<GatewayProcess> => {
    if (configText !== undefined) await writeFile(configFile, configText)
    const gateway = await startGatewayProcess(env, () => secrets)
    opened.defer(gateway.kill)
    return gateway
  }
  let gateway = await start()

  return {
    redis: () => {
      if (!store.redis) throw new Error('the embedded store is no Redis')
      return store.redis
    },
    provider,
    standIn,
    keys,
    env,
    configFile,
    gateway: () => gateway,
    startAnother: start,
    restart: async () => {
      await gateway.kill()
      gateway = await start()
    },
    stop: () => gateway.stop(),
    close,
  }
}

/** The stores of systems under attack. `redis` is a connection that sees all records, wherever they are. */
type SystemStore = { readonly env: Env; readonly redis?: Redis }
const stores = {
  redis: async (opened: Opening): Promise<SystemStore> => {
    const { address, admin, stop } = await startRedisProcess()
    opened.defer(stop)
    return { env: { ABOHAWA_REDIS__URL: `redis://${address}` }, redis: admin }
  },
  sentinel: async (opened: Opening): Promise<SystemStore> => {
    const { url, others, master, stop } = await startSentinel()
    opened.defer(stop)
    const env = {
      ABOHAWA_REDIS__URL: url,
      ABOHAWA_REDIS__MODE: 'sentinel',
      ABOHAWA_REDIS__NODES: others.join(','),
      ABOHAWA_REDIS__SENTINEL_MASTER: masterName,
    }
    return { env, redis: (await master()).admin }
  },
  cluster: async (opened: Opening): Promise<SystemStore> => {
    const { url, nodes, stop } = await startCluster()
    opened.defer(stop)
    const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    opened.defer(async () => cluster.disconnect())
    const keys = async (pattern: string): Promise<string[]> =>
      (await Promise.all(cluster.nodes('master').map(node => node.keys(pattern)))).flat()
    // It has the same commands, each of which goes to the node of its key.
    const redis = Object.assign(cluster, { keys }) as unknown as Redis
    return { env: { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__MODE: 'cluster' }, redis }
  },
  embedded: async (_: Opening, folder: string): Promise<SystemStore> => ({
    env: { ABOHAWA_STORE__PATH: `${folder}/store.db` },
  }),
}

const issueKeys = async (env: Env, count: number): Promise<Key[]> => {
  const keys: Key[] = []
  await administerWith(loadConfig({ files: [], env }), systemClock, async ({ createKey }) => {
    for (let i = 0; i < count; i++) {
      const { id, key } = await createKey(`Fuzz ${i}`, 'enterprise')
      keys.push({ id, key, limit: dailyQuota })
    }
  })
  return keys
}
