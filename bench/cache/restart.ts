// A gateway that starts while another is under load, with everything in the shared tier: how soon it is ready, and
// whether it asks the provider for anything.

import { loadConfig } from '../../src/config/load.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { startCommand } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { callersOf, metricOf, placesOf, type Row, startFleet, until } from './stage.ts'

export const restart: Row = {
  name: 'restart',
  what: 'a start under load, with every cell in the shared tier',
  bar: '0 provider requests for cells in the shared tier; ready in < 2 s',
  run: async scope => {
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const { gateways, env, key } = await startFleet(scope, 1, provider.url, {
      ABOHAWA_REDIS__URL: redis.url,
      ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '500',
    })
    const [first] = gateways
    const grid = createGrid(0.1)
    const places = (await placesOf(loadConfig({ files: [], env: {} }))).all()
    const byCell = Map.groupBy(places, place => grid.cellOf(place.latitude, place.longitude).id)
    const paths = [...byCell.values()].map(([place]) => `/weather/${place?.type}/${place?.id}`)
    const busy = await callersOf(scope, first?.urls.api ?? '', key, 16)
    const fill = async (ask: typeof busy.ask, wanted: readonly string[]) => {
      const left = [...wanted]
      const answers: number[] = []
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          for (let path = left.pop(); path; path = left.pop()) answers.push((await ask(path)).status)
        }),
      )
      return answers.every(status => status === 200)
    }
    scope.progress('filling the shared tier')
    if (!(await fill(busy.ask, paths))) throw new Error('a cell was not filled')
    await until(
      async () => (await metricOf(first?.urls.ops, 'abohawa_cache_wanted_cells')) === byCell.size,
      'all cells are known to be wanted',
    )
    let loaded = true
    const load = (async () => {
      let asked = 0
      while (loaded) {
        await busy.ask(paths[asked % paths.length] ?? '')
        asked += 1
      }
      return asked
    })()
    const { calls } = await provider.state()
    const times: number[] = []
    let warmed = 0
    let second = first
    for (let round = 0; round < 5; round++) {
      scope.progress(`start ${round + 1} of 5`)
      const began = performance.now()
      second = await startCommand(scope, ['serve'], ['ops', 'api'], env)
      await until(async () => (await fetch(`${second?.urls.ops}/readyz`)).status === 200, 'it is ready')
      times.push(performance.now() - began)
      warmed = await metricOf(second?.urls.ops, 'abohawa_cache_memory_entries')
      if (round < 4) {
        second?.child.kill('SIGTERM')
        await second?.exited
      }
    }
    const fresh = await callersOf(scope, second?.urls.api ?? '', key, 16)
    const served = await fill(fresh.ask, paths)
    loaded = false
    const asked = await load
    const requests = (await provider.state()).calls - calls
    return {
      measured: `${requests} requests for ${byCell.size} cells (${warmed} in memory before it was ready); ready in ${(Math.min(...times) / 1000).toFixed(2)} s best, ${(Math.max(...times) / 1000).toFixed(2)} s worst of ${times.length}`,
      met: served && requests === 0 && Math.max(...times) < 2_000,
      notes: [
        `From the start of the process to 200 on \`/readyz\`, while the other gateway answered ${asked} requests one after the other.`,
      ],
    }
  },
}
