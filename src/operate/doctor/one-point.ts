// Loads the weather of one point from the provider, which shows that it answers and accepts the key. Caches nothing, and counts
// in the given budget alone.

import { shipped } from '../../catalogue/snapshot-reader.ts'
import type { Clock } from '../../common/clock.ts'
import type { Config } from '../../config/schema.ts'
import { protocolIn } from '../../provider/account.ts'
import { createBreaker } from '../../provider/breaker.ts'
import type { Budget } from '../../provider/budget.ts'
import { createProvider } from '../../provider/client.ts'
import { createProviderCall } from '../../provider/provider-call.ts'
import { createGrid } from '../../weather/cell.ts'

const nobody = () => {}

/** @throws ProviderError */
export const loadOnePoint = async (
  config: Config,
  clock: Clock,
  budget: Pick<Budget, 'reserve'>,
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
