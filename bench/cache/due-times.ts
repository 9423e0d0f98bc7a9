// The due times of the refreshes of cells that were all filled in one instant. Computed from real keys and the policy itself;
// nothing is started.

import { keyFor } from '../../src/cache/entry-codec.ts'
import { createFreshness, jitterOf } from '../../src/cache/freshness.ts'
import { cacheNamespaceIn } from '../../src/cache/upstream.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { box } from '../../test/scenarios/set-up.ts'
import { count, type Row } from '../row.ts'

const fetchedAt = Date.parse('2026-11-21T06:00:00Z')
const cells = 5_000
const bins = 12

export const dueTimes: Row = {
  id: 'due-times',
  method:
    'The policy by age with its defaults, on the cache keys of 5,000 cells that were fetched in the same millisecond.',
  run: async () => {
    const config = loadConfig({ files: [], env: {} })
    const namespace = cacheNamespaceIn(config)
    const policy = createFreshness(config.cache, () => 1)
    const ages = createGrid(0.05)
      .cellsIn(box)
      .slice(0, cells)
      .map(({ id }) => {
        const key = keyFor(namespace, id)
        const entry = {
          value: null,
          fetchedAt,
          bytes: 0,
          jitter: jitterOf(key, fetchedAt),
          generation: 0,
          run: null,
        }
        return policy.dueAt(entry, fetchedAt) - fetchedAt
      })
    const { freshForMs, freshSpread } = config.cache
    const [first, last] = [Math.min(...ages), Math.max(...ages)]
    const share = (last - first) / freshForMs
    const histogram = Array.from({ length: bins }, () => 0)
    for (const age of ages) {
      const bin = Math.min(bins - 1, Math.floor(((age - freshForMs) / (freshForMs * freshSpread)) * bins))
      histogram[bin] = (histogram[bin] ?? 0) + 1
    }
    const busiest = Math.max(...histogram)
    return {
      findings: [
        {
          what: `${count(ages.length)} cells filled in one instant: refreshes fall due over`,
          bar: '≥ 10 % of cache.freshFor',
          measured:
            `${(share * 100).toFixed(1)} % (${(first / 60_000).toFixed(1)} to ${(last / 60_000).toFixed(1)} min after the fill); ` +
            `busiest minute ${busiest}, even would be ${Math.round(ages.length / bins)}`,
          met: ages.length === cells && share >= 0.1,
          figures: { share, histogram },
        },
      ],
      notes: [`Due by minute, from the 60th after the fill on: ${histogram.join(', ')} cells.`],
    }
  },
}
