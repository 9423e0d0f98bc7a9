// When cells that were filled at one moment fall due: over what share of their freshness their loads are spread.

import { lotOf } from '../../src/cache/entry.ts'
import { freshByAge } from '../../src/cache/freshness.ts'
import { loadConfig } from '../../src/config/load.ts'
import { questionIn } from '../../src/gateway/supply.ts'
import { keyFor } from '../../src/timelines/question.ts'
import { createGrid } from '../../src/weather/cell.ts'
import type { Row } from './stage.ts'

const bins = 10

export const spread: Row = {
  name: 'spread',
  what: '5,000 cells filled in one second: when their refreshes fall due',
  bar: 'spread over ≥ 10 % of freshness',
  run: async () => {
    const config = loadConfig({ files: [], env: {} })
    const policy = freshByAge(config.cache, () => 1)
    const grid = createGrid(0.05)
    const cells = grid.cellsIn({ south: 20, west: 87.5, north: 27, east: 93 }).slice(0, 5_000)
    const fetchedAt = 1_795_240_800_000
    const due = cells.map(({ id }, i) => {
      const at = fetchedAt + (i % 1_000)
      const lot = lotOf(keyFor(questionIn(config), id), at)
      const entry = { value: null, fetchedAt: at, bytes: 0, lot, generation: 0, run: null }
      return policy.dueAt(entry, at) - fetchedAt
    })
    const [first, last] = [Math.min(...due), Math.max(...due)]
    const share = (last - first) / config.cache.freshForMs
    const counts = Array.from(
      { length: bins },
      (_, bin) =>
        due.filter(at => Math.min(bins - 1, Math.floor(((at - first) / (last - first)) * bins)) === bin)
          .length,
    )
    return {
      measured: `over ${(share * 100).toFixed(0)} % of freshness; ${Math.min(...counts)} to ${Math.max(...counts)} in each tenth of that`,
      met: share >= 0.1,
      notes: ['Computed with the lots of 5,000 real cells, as the cache draws them.'],
    }
  },
}
