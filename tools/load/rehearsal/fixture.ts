// The processes of a rehearsal: a provider and a gateway on clocks that move together, with an embedded store in a temporary folder.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCalendar } from 'abohawa/common/calendar.ts'
import type { Clock } from 'abohawa/common/clock.ts'
import type { ProcessReport, Reply } from 'abohawa/common/moved-clock-commands.ts'
import { variableOf } from 'abohawa/config/environment.ts'
import { loadConfig } from 'abohawa/config/load.ts'
import type { Config } from 'abohawa/config/schema.ts'
import { createAdministration, openEmbeddedStore } from 'abohawa/parts'
import type { ProviderCounts } from '../report/provider-weight.ts'
import { startControlled } from './controlled-process.ts'

export type FixtureOptions = {
  /** The first instant, ms since the epoch. */
  readonly start: number
  /** Configuration files and environment of the gateway. */
  readonly files: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly keys: readonly string[]
  /** The number of unlimited keys, for requests that were recorded without a key. */
  readonly substitutes: number
  /** Of the keys in the traffic; unlimited if not given. */
  readonly tier: string | undefined
  readonly provider: ProviderOptions
}

export type ProviderOptions = {
  readonly limits: 'free' | 'none'
  readonly runs: 'ecmwf' | 'none'
  readonly seed: number
}

export type Fixture = Awaited<ReturnType<typeof openFixture>>

const unlimitedTier = 'rehearsal'
const subscriber = 'Rehearsal'

/** Settings that every rehearsal replaces: listeners, store, log and provider. */
const placeOf = (folder: string, providerUrl: string): Record<string, string> => ({
  'provider.baseUrl': providerUrl,
  'provider.fallbacks': '[]',
  'redis.url': '',
  'redis.mode': 'single',
  'redis.nodes': '[]',
  'redis.sentinelMaster': '',
  'redis.ca': '',
  'store.path': join(folder, 'rehearsal.db'),
  'server.host': '127.0.0.1',
  'server.port': '0',
  'server.tls.cert': '',
  'server.tls.key': '',
  'server.tls.ticketKey': '',
  'server.drainFor': '0s',
  'ops.host': '127.0.0.1',
  'ops.port': '0',
  'health.port': '',
  'log.file': '',
  'log.level': 'warn',
  'log.access': 'false',
})

export const settingsOfPlace: ReadonlySet<string> = new Set(Object.keys(placeOf('', '')))

const environmentOf = (env: NodeJS.ProcessEnv, folder: string, providerUrl: string): NodeJS.ProcessEnv => {
  const own = { ...placeOf(folder, providerUrl), [`quota.tiers.${unlimitedTier}`]: '1000000000' }
  const overrides: NodeJS.ProcessEnv = { OTEL_SDK_DISABLED: 'true' }
  for (const [path, value] of Object.entries(own)) {
    const variable = variableOf(path.split('.'))
    overrides[variable] = value
    // A setting must not also be given as the file of a secret.
    overrides[`${variable}__FILE`] = undefined
  }
  return { ...env, ...overrides }
}

/** @throws InputError if a process can't be started */
export const openFixture = async (options: FixtureOptions) => {
  const { start, files, env, provider: of } = options
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-rehearsal-'))
  opening.defer(() => rm(folder, { recursive: true, force: true }))
  const clockArgs = ['--moved-clock', String(start)]
  const providerArgs = ['--limits', of.limits, '--runs', of.runs, '--seed', String(of.seed)]
  const provider = await startControlled(
    'the provider',
    ['provider', '--port', '0', ...providerArgs, ...clockArgs],
    env,
  )
  opening.defer(provider.stop)
  const gatewayEnv = environmentOf(env, folder, provider.url)
  const config = loadConfig({ files, env: gatewayEnv })
  const { keys, substitutes } = await createKeys(config, { now: () => start }, options)
  const configArgs = files.flatMap(file => ['--config', file])
  const gateway = await startControlled('the gateway', ['serve', ...configArgs, ...clockArgs], gatewayEnv)
  opening.defer(gateway.stop)

  const ended = Promise.race([provider.ended, gateway.ended])
  ended.catch(() => {})
  const opened = opening.move()
  return {
    apiUrl: gateway.url,
    config,
    keys: keys as ReadonlyMap<string, string>,
    substitutes: substitutes as readonly string[],
    /** Moves both clocks. Resolves when the due work has ended, to the provider's counts before the instant. */
    moveTo: async (instant: number): Promise<ProviderCounts> => {
      // The provider first, because the gateway may call it at the instant.
      const reply = await provider.send({ moveTo: instant })
      await gateway.send({ moveTo: instant })
      return countsIn(reply)
    },
    /** Resolves when no load is running, to the number of requests that wait for a later instant. */
    settle: async (): Promise<number> => (await gateway.send({ settle: true })).unanswered,
    counts: async (): Promise<ProviderCounts> => countsIn(await provider.send({ settle: true })),
    gatewayReport: async (): Promise<ProcessReport | undefined> =>
      (await gateway.send({ report: true })).report,
    ended,
    [Symbol.asyncDispose]: (): Promise<void> => opened.disposeAsync(),
  }
}

const countsIn = ({ counts: { calls = 0, weight = 0, refused = 0 } }: Reply): ProviderCounts => ({
  calls,
  weight,
  refused,
})

const createKeys = async (
  config: Config,
  clock: Clock,
  { keys: ids, tier = unlimitedTier, substitutes }: FixtureOptions,
): Promise<{ keys: Map<string, string>; substitutes: string[] }> => {
  const store = openEmbeddedStore(config.store.path, clock)
  try {
    const { timeZone, tiers } = config.quota
    const administration = createAdministration({ store, tiers, calendar: createCalendar(timeZone), clock })
    const requests = [
      ...ids.map(() => ({ subscriber, tier })),
      ...Array.from({ length: substitutes }, () => ({ subscriber, tier: unlimitedTier })),
    ]
    const created: string[] = []
    for await (const part of administration.createKeys(requests))
      for (const { key } of part) created.push(key ?? '')
    return {
      keys: new Map(ids.map((id, i) => [id, created[i] ?? ''])),
      substitutes: created.slice(ids.length),
    }
  } finally {
    await store.close()
  }
}
