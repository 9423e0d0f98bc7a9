// Settings that are right and change nothing beside the others: those of the other policy of freshness, of a listener or a store
// that is not used, of what is switched off. Says which and why; what is wrong is for rules.ts.

import { DEFAULT_NAME } from './default-file.ts'
import { printPlace } from './faults.ts'
import type { ConfigFault, LoadedConfig } from './load.ts'
import type { Config } from './schema.ts'

type Rule = {
  readonly paths: readonly string[]
  /** Why they have no effect, as the end of a sentence; false where they have one. */
  readonly because: (config: Config) => string | false
}

const all = (section: string, names: readonly string[]): string[] => names.map(name => `${section}.${name}`)

const rules: readonly Rule[] = [
  {
    paths: ['cache.freshFor'],
    because: ({ cache: { freshness, freshForMs, freshForAtMostMs } }) =>
      freshness === 'run' &&
      freshForMs <= freshForAtMostMs &&
      'cache.freshness is run, where it counts only while no model run could be read; by age it counts always',
  },
  {
    paths: [...all('cache', ['settleFor', 'spreadOver']), ...all('provider.runs', ['model', 'pollEvery'])],
    because: ({ cache }) =>
      cache.freshness === 'age' && 'cache.freshness is age, which follows no model runs',
  },
  {
    paths: ['cache.freshForAtMost'],
    because: ({ cache, provider: { budget } }) =>
      cache.freshness === 'age' &&
      budget.perDay === null &&
      'cache.freshness is age and provider.budget.perDay is null, so that freshness is never stretched',
  },
  {
    paths: ['cache.prefetchPlaces'],
    because: ({ cache }) => cache.prefetch === 'none' && 'cache.prefetch is none',
  },
  {
    paths: all('provider.budget', ['reserve', 'keyShare', 'outageShare']),
    because: ({ provider: { budget } }) =>
      [budget.perMinute, budget.perHour, budget.perDay].every(limit => limit === null) &&
      'provider.budget has no limits',
  },
  {
    paths: ['provider.budget.outageShare'],
    because: ({ redis, server }) =>
      redis.url === null &&
      !server.reusePort &&
      'redis.url is not set and server.reusePort is false, so that no other process shares the store',
  },
  {
    paths: ['provider.retryDelay'],
    because: ({ provider }) => provider.retries === 0 && 'provider.retries is 0',
  },
  {
    paths: ['server.tls.http2'],
    because: ({ server: { tls } }) =>
      tls.cert === null && 'server.tls.cert is not set, and without TLS the API speaks HTTP/1.1 alone',
  },
  {
    paths: ['server.tls.ticketKey'],
    because: ({ server: { tls } }) => tls.cert === null && 'server.tls.cert is not set',
  },
  {
    paths: ['status.maxConnections'],
    because: ({ status }) =>
      status.port === null && 'status.port is not set, so that there is no such listener',
  },
  {
    paths: all('redis', [
      'nodes',
      'sentinelMaster',
      'sentinelPassword',
      'ca',
      'prefix',
      'connectTimeout',
      'commandTimeout',
    ]),
    because: ({ redis }) => redis.url === null && 'redis.url is not set: the store is the file of store.path',
  },
  {
    paths: ['store.path'],
    because: ({ redis }) => redis.url !== null && 'redis.url is set, and Redis is the store',
  },
  {
    paths: all('log', ['access', 'accessShare']),
    because: ({ log: { access, level } }) =>
      access &&
      !['trace', 'debug', 'info'].includes(level) &&
      `log.level is ${level}, and the lines of requests are of level info`,
  },
  {
    paths: all('log', ['accessShare', 'clientAddress']),
    because: ({ log }) => !log.access && 'log.access is false',
  },
  {
    paths: ['config.pollEvery'],
    because: ({ config }) => !config.watch && 'config.watch is false',
  },
]

/** The settings that have no effect beside the others, whatever their source, and why. */
export const withoutEffect = (config: Config): ReadonlyMap<string, string> =>
  new Map(
    rules.flatMap(({ paths, because }) => {
      const reason = because(config)
      return reason === false ? [] : paths.map(path => [path, reason] as const)
    }),
  )

/** The settings that somebody gave for nothing, and the files that set nothing, each with its place. */
export const givenWithoutEffect = ({ config, origins, files }: LoadedConfig): ConfigFault[] => [
  ...files
    .filter(({ settings }) => settings === 0)
    .map(({ name }) => ({ file: name, sentence: `${name}: the file sets nothing` })),
  ...[...withoutEffect(config)].flatMap(([path, reason]) => {
    const place = origins.get(path)
    if (!place || ('file' in place && place.file === DEFAULT_NAME)) return []
    return [{ ...place, path, sentence: `${printPlace(place)}: ${path} has no effect: ${reason}` }]
  }),
]
