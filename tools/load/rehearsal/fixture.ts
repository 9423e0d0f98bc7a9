// The processes of a rehearsal: a provider and a gateway on clocks that are moved together, with an embedded store in a temporary
// folder that holds the keys of the traffic. Sends no requests.

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
  /** Config files of the gateway, and its environment with the settings to rehearse. */
  readonly files: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly keys: readonly string[]
  /** How many keys there are for requests that were recorded without one, and that nothing limits. */
  readonly substitutes: number
  /** Of the keys in the traffic; without one nothing limits them. */
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

/** Where the gateway listens, what it writes and where it gets its weather, whatever its configuration says. */
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

/** The settings that are the same in every rehearsal, so that none can be rehearsed. */
export const settingsOfPlace: ReadonlySet<string> = new Set(Object.keys(placeOf('', '')))

const environmentOf = (env: NodeJS.ProcessEnv, folder: string, providerUrl: string): NodeJS.ProcessEnv => {
  const own = { ...placeOf(folder, providerUrl), [`quota.tiers.${unlimitedTier}`]: '1000000000' }
  const overrides: NodeJS.ProcessEnv = { OTEL_SDK_DISABLED: 'true' }
  for (const [path, value] of Object.entries(own)) {
    const variable = variableOf(path.split('.'))
    overrides[variable] = value
    // A setting is given once: the file of a secret would be a second time.
    overrides[`${variable}__FILE`] = undefined
  }
  return { ...env, ...overrides }
}

/** @throws InputError when a process can't be started */
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
    /** Moves both clocks. Resolves with the provider's counts before the instant, when the work that is due has ended. */
    moveTo: async (instant: number): Promise<ProviderCounts> => {
      // The provider first: what the gateway has to do at the instant it may have to do there.
      const reply = await provider.send({ moveTo: instant })
      await gateway.send({ moveTo: instant })
      return countsIn(reply)
    },
    /** Resolves when no load is under way, with the number of requests that wait for a later instant. */
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
