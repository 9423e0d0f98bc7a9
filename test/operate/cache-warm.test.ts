// Without it a warming that was stopped could go on for minutes, and a gateway could not end meanwhile.

import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { createCacheWarm } from '../../src/operate/cache-warm.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'

for (const isFresh of [false, true])
  t.test(
    `a warming that is stopped looks for no more cells, where the first are ${isFresh ? '' : 'not '}fresh`,
    async t => {
      const grid = createGrid(0.1)
      const cells = Array.from({ length: 1_000 }, (_, i) => grid.cellOf(i / 100, 90))
      let looks = 0
      const warm = createCacheWarm(loadConfig({ files: [], env: {} }), {
        timelines: {
          wanted: async () => cells,
          isFresh: async () => {
            looks += 1
            if (looks === 1) void warm.stopWarm()
            return isFresh
          },
          ensure: async () => t.fail('it loads'),
        },
        catalogue: {
          get current(): never {
            throw new Error('cells in demand need no catalogue')
          },
        },
        clock: manualClock(),
      })
      const plan = await warm.startWarm({})
      t.equal(isFresh ? plan.fresh : plan.toLoad, looks)
      t.ok(looks < 20, `${looks} of 1,000 cells`)
      t.hasStrict(await warm.stopWarm(), { state: 'stopped', stoppedBy: 'operator', loaded: 0 })
    },
  )
