// The event-loop delay while many cells are reloaded under load.

import { setTimeout as pause } from 'node:timers/promises'
import { createGrid } from '../../src/weather/cell.ts'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { box, forAll, metric, pathOf } from '../../test/scenarios/set-up.ts'
import { runCommand } from '../../test/support/process.ts'
import { until } from '../../test/support/until.ts'
import { count, median, ms, type Row } from '../row.ts'
import { get } from './contender.ts'
import { gatewayEnv, startGateway } from './gateways.ts'
import { load } from './load.ts'
import { serverCores } from './pinned.ts'
import { openBackground } from './world.ts'

const cells = 1_500
const boundMs = 10
/** The period of the timer that measures the delay; it is part of the measured figure. */
const timerMs = 10

export const refresh: Row = {
  id: 'refresh',
  method:
    `${count(cells)} cells on Redis are purged softly (\`abohawa cache purge all\`) while all of them are requested in turn as fast ` +
    'as it goes, until the provider has received a request for each. The delay is nodejs_eventloop_lag_* of the metrics, which restart ' +
    `with each reading, from the first of these (within 100 ms) to the last, less the ${timerMs} ms of the timer behind them. ` +
    'Beside it the same load with nothing to load.',
  run: async (scope, progress, { settings: { rounds = 5, seconds = 4 } }) => {
    const { folder, provider, providerUrl, storeEnv } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, storeEnv)
    const [issued] = await issueKeys(env, ['enterprise'])
    const key = issued?.key ?? ''
    const { urls } = await startGateway(scope, folder, serverCores[0], env)
    const ops = urls.ops ?? ''
    const paths = createGrid(0.1).cellsIn(box).slice(0, cells).map(pathOf)
    progress(`fills ${paths.length} cells`)
    await forAll(paths, 64, async one => {
      const { status } = await get(urls.api + one, { 'x-api-key': key })
      if (status !== 200) throw new Error(`${one} answered ${status}`)
    })
    const workload = { url: urls.api ?? '', paths, keys: [key] }
    const delay = async (): Promise<{ p99: number; most: number }> => {
      // One scrape gives both figures: each scrape begins a new window.
      const text = (await get(`${ops}/metrics`)).body.toString()
      const of = (name: string): number =>
        Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(text)?.[1]) * 1000 -
        timerMs
      return { p99: Math.max(0, of('p99')), most: Math.max(0, of('max')) }
    }

    const quiet: number[] = []
    const p99s: number[] = []
    const slowest: number[] = []
    const tookMs: number[] = []
    let [answers, wrong] = [0, 0]
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      await delay()
      await load(folder, workload, Math.min(2, seconds))
      quiet.push((await delay()).p99)

      const { points } = await provider.state()
      let done = false
      const loading = (async () => {
        while (!done) {
          const loaded = await load(folder, workload, 2)
          answers += loaded.answers
          wrong += loaded.wrong
        }
      })()
      const reloaded = async (): Promise<number> => (await provider.state()).points - points
      const purged = await runCommand(['cache', 'purge', 'all'], env)
      if (purged.code !== 0) throw new Error(purged.stderr)
      // A gateway learns of a purge some seconds later; that wait must not be part of the window.
      await until(
        'the first cells are reloaded',
        async () => {
          await delay()
          await pause(100)
          return (await reloaded()) > 0
        },
        60_000,
      )
      const started = performance.now()
      await until('all cells were reloaded', async () => (await reloaded()) >= cells, 60_000)
      tookMs.push(performance.now() - started)
      const { p99, most } = await delay()
      done = true
      await loading
      p99s.push(p99)
      slowest.push(most)
      await until(
        'nothing waits',
        async () => (await metric(ops, 'abohawa_provider_waiting_cells')) === 0,
        60_000,
      )
    }
    const bestAndMedian = (values: readonly number[]): string =>
      `${ms(Math.min(...values))} / ${ms(median(values))}`
    return {
      findings: [
        {
          what: `event-loop delay while ${count(cells)} cells are reloaded under load: p99`,
          bar: `≤ ${boundMs} ms`,
          measured:
            `${bestAndMedian(p99s)} best / median of ${rounds}, ${ms(Math.max(...slowest))} the longest of all; ${bestAndMedian(quiet)} under the ` +
            `same load without; cells loaded in ${ms(median(tookMs))}; ${wrong} of ${count(answers)} answers wrong`,
          met: Math.min(...p99s) <= boundMs && wrong === 0,
          figures: { p99: p99s, longest: slowest, quiet, tookMs, wrong },
        },
      ],
    }
  },
}
