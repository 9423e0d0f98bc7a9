// Connects to what a configuration names, for `config check --connect`, and says what answered: pings Redis, and loads the
// weather of one point from the provider without the budget of the fleet. Caches and counts nothing.

import { shipped } from '../catalogue/snapshot-reader.ts'
import type { Clock } from '../clock.ts'
import { faultAt } from '../config/file-check.ts'
import type { ConfigFault, LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../errors.ts'
import { createBreaker } from '../provider/breaker.ts'
import type { Budget } from '../provider/budget.ts'
import { createProvider } from '../provider/client.ts'
import { createProviderCall } from '../provider/provider-call.ts'
import { redactedUrl } from '../redacted-url.ts'
import { connect, ping } from '../stores/redis/connection.ts'
import { infoOf, serverName } from '../stores/redis/info.ts'
import type { RedisOptions } from '../stores/redis/place.ts'
import { checkRedisFormat } from '../stores/redis/redis-store.ts'
import { protocolIn } from '../upstream/account.ts'
import { createGrid } from '../weather/cell.ts'

const nobody = () => {}

/** A server that answered: its setting, its address without secrets, its kind, and its latency. */
export type Reached = {
  readonly path: 'redis.url' | 'provider.baseUrl'
  readonly url: string
  /** Such as `Redis 8.0.1 (single)`. */
  readonly what: string
  /** Of a ping, or of the load of one point. */
  readonly latencyMs: number
}

/** The servers that answer as they should, and a fault for each that does not. */
export const checkConnections = async (
  config: Config,
  origins: LoadedConfig['origins'],
  clock: Clock,
): Promise<{ faults: ConfigFault[]; reached: Reached[] }> => {
  const faults: ConfigFault[] = []
  const reached: Reached[] = []
  const attempt = async (
    path: Reached['path'],
    url: string,
    check: () => Promise<Pick<Reached, 'what' | 'latencyMs'>>,
  ): Promise<void> => {
    try {
      reached.push({ path, url: redactedUrl(url), ...(await check()) })
    } catch (error) {
      faults.push(faultAt(path, messageOf(error), origins))
    }
  }
  const { url } = config.redis
  // The embedded store is a file, which is checked as one.
  if (url !== null) await attempt('redis.url', url, () => pingRedis({ ...config.redis, url }))
  await attempt('provider.baseUrl', config.provider.baseUrl, async () => {
    const latencyMs = await timed(() => loadOnePoint(config, clock))
    return { what: `the provider, with ${config.provider.apiKey === null ? 'no' : 'a'} key`, latencyMs }
  })
  return { faults, reached }
}

const pingRedis = async (options: RedisOptions): Promise<Pick<Reached, 'what' | 'latencyMs'>> => {
  const redis = await connect(options, { redisAway: nobody, redisBack: nobody })
  try {
    await checkRedisFormat(redis, options)
    const what = `${serverName(infoOf(await redis.info('server')))} (${options.mode})`
    return { what, latencyMs: await timed(() => ping(redis)) }
  } finally {
    redis.disconnect()
  }
}

const timed = async (step: () => Promise<void>): Promise<number> => {
  const from = performance.now()
  await step()
  return Number((performance.now() - from).toFixed(1))
}

/** Loads the weather of one point. @param budget by default one without limits. @throws ProviderError */
export const loadOnePoint = async (
  config: Config,
  clock: Clock,
  budget: Pick<Budget, 'reserve'> = withoutLimits,
): Promise<void> => {
  // Of the product's own places, whatever places there are: the provider has weather for all of the globe.
  const { bounds } = shipped
  const protocol = protocolIn(config)
  const call = createProviderCall(config.provider, { protocol, clock })
  const provider = createProvider(
    { ...config.provider, retries: 0, queueForMs: 0 },
    {
      call,
      protocol,
      breaker: createBreaker(config.provider.breaker, clock, nobody),
      budget,
      recentConsumers: () => [],
      clock,
      observer: { request: nobody, refused: nobody, loaded: nobody, shareUsedUp: nobody },
    },
  )
  const cell = createGrid(config.cache.cellDegrees).cellOf(
    (bounds.south + bounds.north) / 2,
    (bounds.west + bounds.east) / 2,
  )
  try {
    await provider.load(cell)
  } finally {
    await provider.close()
    await call.close()
  }
}

const withoutLimits: Pick<Budget, 'reserve'> = {
  reserve: async points => ({
    points,
    claims: [],
    retryAt: null,
    isValid: () => true,
    limited: async () => {},
    settle: async () => {},
  }),
}
