// A store that a gateway has used, for tests of commands that run without one.

import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { announceChange } from '../../src/keys/key-directory.ts'
import { openStore } from '../../src/stores/open-store.ts'

/** Makes the store of these variables, and leaves the mark of a gateway's start in it. */
export const useStore = async (env: Record<string, string>): Promise<void> => {
  const config = loadConfig({ files: [], env })
  const store = await openStore(config, systemClock, { redisAway: () => {}, redisBack: () => {} })
  await announceChange(store, 'begin', Date.now())
  await store.close()
}
