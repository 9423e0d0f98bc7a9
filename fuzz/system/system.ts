// The system under attack: a gateway process, a real Redis, a provider process, and a good key. A gateway that died is restarted on
// the same Redis, so that one fault does not hide the others.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { administerWith } from '../../test/scenarios/keys.ts'
import { noBudget, onFreePorts, plentyOfQuota } from '../../test/support/gateway-env.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider.ts'
import { patientRedisEnv, startRedis } from '../../test/support/redis-server.ts'
import { scopeOf } from '../../test/support/teardown.ts'
import { wholeCatalogue } from '../../test/support/usual-catalogue.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'

type Env = Readonly<Record<string, string>>

/** An HTTP server in the provider's place. */
type StandIn = { readonly url: string; close(): Promise<void> }

export type SystemSetting = {
  readonly env?: Env
  /** The text of a config file that the gateway reads, if it is to have one. */
  readonly configText?: string
  /** The provider of the gateway; the provider process itself if not given. */
  readonly standIn?: (provider: ProviderProcess) => Promise<StandIn>
}

export type System = {
  readonly redis: Redis
  readonly standIn: StandIn | undefined
  /** With a quota that no run uses up. */
  readonly key: string
  readonly env: Env
  /** The config file of the gateway, where the setting has a text for it. */
  readonly configFile: string
  /** The gateway that runs now. */
  gateway(): GatewayProcess
  /** Starts a new process in place of the previous one. */
  restart(): Promise<void>
  /** Ends everything that was started. */
  close(): Promise<void>
}

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
    return { ...(await open(setting, opened)), close }
  } catch (error) {
    await close()
    throw error
  }
}

const open = async (
  { env: more, configText, standIn: startStandIn }: SystemSetting,
  opened: AsyncDisposableStack,
): Promise<Omit<System, 'close'>> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-fuzz-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const scope = scopeOf(opened)
  const { url, admin: redis } = await startRedis(scope)
  // Its weather never changes; its clock is the machine's, like the gateway's.
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const standIn = await startStandIn?.(provider)
  if (standIn) opened.defer(standIn.close)
  const configFile = join(folder, 'gateway.yaml')
  const env = {
    ...(configText !== undefined && { ABOHAWA_CONFIG_FILE: configFile }),
    ...{ ...onFreePorts, ...noBudget, ...plentyOfQuota, ...patientRedisEnv },
    ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '5s',
    ABOHAWA_REDIS__URL: url,
    // Long timeouts: a busy machine must not look like an outage of the provider.
    ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '1m',
    ABOHAWA_PROVIDER__TIMEOUT: '1m',
    ABOHAWA_TEST_CACHE__WAIT_FOR: '2m',
    ABOHAWA_PROVIDER__BASE_URL: standIn?.url ?? provider.url,
    ABOHAWA_CATALOGUE__PATH: wholeCatalogue,
    ...more,
  }
  let key = ''
  await administerWith(env, async ({ createKey }) => {
    key = (await createKey('Fuzz', 'enterprise')).key
  })
  const start = async (): Promise<GatewayProcess> => {
    if (configText !== undefined) await writeFile(configFile, configText)
    const started = await startGatewayProcess(env, key.slice('svc_live_'.length))
    opened.defer(started.kill)
    return started
  }
  let gateway = await start()
  const restart = async (): Promise<void> => {
    await gateway.kill()
    gateway = await start()
  }
  return { redis, standIn, key, env, configFile, gateway: () => gateway, restart }
}
