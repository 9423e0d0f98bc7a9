// The system under attack: a gateway process, a real store, a provider process, and keys. A gateway that died is restarted on
// the same store, so that one fault does not hide the others.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { administerWith } from '../../src/cli/administer.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider-process.ts'
import type { Finding } from '../finding.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import { openSystemStore, type StoreKind } from './stores.ts'

type Env = Readonly<Record<string, string>>

/** An HTTP server in the provider's place. */
export type StandIn = { readonly url: string; close(): Promise<void> }

export type SystemSetting = {
  readonly env?: Env
  /** One Redis, if not given. */
  readonly store?: StoreKind
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
  readonly configFile: string | undefined
  /** The gateway that runs now. */
  gateway(): GatewayProcess
  /** Another gateway of the same fleet, which ends with the system. */
  startAnother(): Promise<GatewayProcess>
  /** Starts a new process in place of one that died or hangs. */
  restart(): Promise<void>
  /** Stops the gateway gracefully. */
  stop(): Promise<Finding[]>
  /** Ends everything that was started. */
  close(): Promise<void>
}

const prefix = 'fuzz:'
/** Of every key. */
export const dailyQuota = 1_000_000_000

/** @throws Error when something does not start */
export const startSystem = async (setting: SystemSetting): Promise<System> => {
  await using opening = new AsyncDisposableStack()
  const scope = { teardown: (fn: () => unknown) => opening.defer(async () => void (await fn())) }
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-fuzz-'))
  opening.defer(() => rm(folder, { recursive: true, force: true }))
  const store = await openSystemStore(setting.store ?? 'redis', folder, opening)
  // Its weather never changes; its clock is the machine's, like the gateway's.
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const standIn = await setting.standIn?.(provider)
  if (standIn) opening.defer(standIn.close)

  const { configText } = setting
  const configFile = configText === undefined ? undefined : join(folder, 'gateway.yaml')
  const env = {
    ...(configFile && { ABOHAWA_CONFIG_FILE: configFile }),
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
  const start = async () => {
    if (configFile) await writeFile(configFile, configText ?? '')
    return startGatewayProcess(env, () => secrets)
  }
  let gateway = await start()
  const opened = opening.move()

  const system: System = {
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
    startAnother: async () => {
      const another = await start()
      opened.defer(another.kill)
      return another
    },
    restart: async () => {
      await gateway.kill()
      gateway = await start()
    },
    stop: () => gateway.stop(),
    close: async () => {
      running.delete(system)
      await gateway.kill()
      await opened.disposeAsync()
    },
  }
  running.add(system)
  return system
}

const running = new Set<System>()

/** Ends all started processes when the fuzzer itself has to end. */
export const closeAll = async (): Promise<void> => {
  await Promise.all([...running].map(system => system.close()))
}

const issueKeys = async (env: Env, count: number): Promise<Key[]> => {
  const keys: Key[] = []
  await administerWith(loadConfig({ files: [], env }), systemClock, async administration => {
    for (let i = 0; i < count; i++) {
      const { id, key } = await administration.createKey(`Fuzz ${i}`, 'enterprise')
      keys.push({ id, key, limit: dailyQuota })
    }
  })
  return keys
}
