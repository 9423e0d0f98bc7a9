// When the cache runs out of what is in demand: the first expiry of an entry whose key was requested lately.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { firstExpiry } from '../../src/cache/first-expiry.ts'
import { freshByAge } from '../../src/cache/freshness.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/memory-tier.ts'

const policy = freshByAge(
  { freshForMs: 1_000, freshSpread: 0, freshForAtMostMs: 1_000, refreshAheadForMs: 0, staleForMs: 5_000 },
  () => 1,
)

t.test(
  'the entry in demand that expires first decides, and what nobody asked for lately does not',
  async t => {
    const demand = createDemand<null>()
    const memory = createMemoryTier<null>(1_000)
    const parts = { demand, memory, policy }
    const load = (key: string, fetchedAt: number) =>
      keepEntry(memory, key, { value: null, bytes: 1, fetchedAt, jitter: 0, generation: 0, run: null })
    t.equal(firstExpiry(parts, 0, 100), undefined, 'nothing is in demand')

    load('old', 1_000)
    load('older', 500)
    load('oldest', 100)
    demand.record('oldest', null, 600)
    demand.record('old', null, 3_000)
    demand.record('older', null, 3_001)
    demand.record('not in memory', null, 3_002)
    t.equal(firstExpiry(parts, 2_000, 3_100), 6_500)
    load('older', 3_050)
    t.equal(firstExpiry(parts, 2_000, 3_100), 7_000, 'a load moves it')
    t.equal(firstExpiry(parts, 0, 9_000), 6_100, 'it may be past')

    const purged = { value: null, bytes: 1, fetchedAt: 3_090, jitter: 0, generation: 0, run: null }
    keepEntry(memory, 'old', purged, 'soft')
    t.equal(firstExpiry(parts, 2_000, 3_100), 9_050, 'stale after a soft purge, and served')
    keepEntry(memory, 'old', purged, 'hard')
    t.equal(firstExpiry(parts, 2_000, 3_100), 3_090, 'not served after a hard one')
  },
)
