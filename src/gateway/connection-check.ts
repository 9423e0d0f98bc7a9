// Connects to what a configuration names, for `config check --connect`: pings Redis, and loads the weather of one point
// from the provider without the budget of the fleet. Caches and counts nothing.

import type { Clock } from '../clock.ts'
import type { ConfigFault, LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../errors.ts'
import { createBreaker } from '../provider/breaker.ts'
import type { Budget } from '../provider/budget.ts'
import { createProvider } from '../provider/client.ts'
import { createProviderCall } from '../provider/provider-call.ts'
import { openStore } from '../stores/open-store.ts'
import { createGrid } from '../weather/cell.ts'
import { faultAt } from './file-check.ts'
import { protocolIn } from './supply.ts'

const nobody = () => {}

/** What can't be reached or does not answer as it should; none where all is well. */
export const checkConnections = async (
  config: Config,
  origins: LoadedConfig['origins'],
  clock: Clock,
): Promise<ConfigFault[]> => {
  const faults: ConfigFault[] = []
  const attempt = async (path: string, check: () => Promise<void>): Promise<void> => {
    try {
      await check()
    } catch (error) {
      faults.push(faultAt(path, messageOf(error), origins))
    }
  }
  // The embedded store is a file, which is checked as one.
  if (config.redis.url !== null) await attempt('redis.url', () => pingStore(config, clock))
  await attempt('provider.baseUrl', () => loadOnePoint(config, clock))
  return faults
}

const pingStore = async (config: Config, clock: Clock): Promise<void> => {
  const store = await openStore(config, clock, { redisAway: nobody, redisBack: nobody })
  try {
    await store.ping()
  } finally {
    await store.close()
  }
}

/** Loads the weather of one point. @param budget by default one without limits. @throws ProviderError */
export const loadOnePoint = async (
  config: Config,
  clock: Clock,
  budget: Pick<Budget, 'reserve' | 'limited'> = withoutLimits,
): Promise<void> => {
  const { bounds } = config.catalogue
  const protocol = protocolIn(config)
  const call = createProviderCall(config.provider, { protocol, clock })
  const provider = createProvider(
    { ...config.provider, retries: 0, queueForMs: 0 },
    {
      call,
      protocol,
      breaker: createBreaker(config.provider.breaker, clock, nobody),
      budget,
      clock,
      observer: { request: nobody, refused: nobody },
    },
  )
  const cell = createGrid(config.cache.cellDegrees).cellOf(
    (bounds.south + bounds.north) / 2,
    (bounds.west + bounds.east) / 2,
  )
  try {
    await provider.load(cell)
  } finally {
    provider.close()
    await call.close()
  }
}

const withoutLimits: Pick<Budget, 'reserve' | 'limited'> = {
  reserve: async points => ({ points, retryAt: null, isValid: () => true, settle: async () => {} }),
  limited: async () => {},
}
