// A gateway that starts while another is under load, with all weather in the shared tier: when it is ready, and how many
// provider requests it makes.

import { request } from 'undici'
import {
  createKey,
  forAll,
  metric,
  pathOf,
  placesByCell,
  processEnv,
  senderTo,
  startProcess,
} from '../../test/scenarios/set-up.ts'
import { startCommand } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { freePort, startRedis } from '../../test/support/redis-server.ts'
import { until } from '../../test/support/until.ts'
import { count, median, ms, type Row } from '../row.ts'

const rounds = 5
const load = 4

export const restart: Row = {
  id: 'restart',
  method:
    'Redis holds the weather of every cell of the catalogue; another gateway on the same machine gets requests without pause ' +
    `from ${load} callers. Timed from the start of the process to the first 200 of /readyz, requested every 10 ms; then ` +
    'every cell is requested.',
  run: async (scope, progress) => {
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const env = processEnv(provider.url, { ABOHAWA_REDIS__URL: redis.url })
    const key = await createKey(env)
    const first = await startProcess(scope, env)
    const paths = placesByCell().map(({ cell }) => pathOf(cell))
    const send = senderTo(scope, first.urls.api ?? '', key)
    progress(`fills ${paths.length} cells`)
    await forAll(paths, 128, send)
    // The heartbeat that reports demand comes every 5 s.
    await until(
      'all cells are wanted',
      async () => (await metric(first.urls.ops ?? '', 'abohawa_cache_wanted_cells')) >= paths.length,
      60_000,
      100,
    )

    let loading = true
    let served = 0
    const background = forAll(Array.from({ length: load }), load, async () => {
      for (let i = 0; loading; i++) {
        await send(paths[i % paths.length] ?? '')
        served += 1
      }
    })
    const readyMs: number[] = []
    const warmed: number[] = []
    let [failed, sent] = [0, 0]
    const { points } = await provider.state()
    for (let round = 1; round <= rounds; round++) {
      progress(`start ${round} of ${rounds}`)
      const ops = await freePort()
      const started = performance.now()
      const starting = startCommand(scope, ['serve'], ['api', 'ops'], {
        ...env,
        ABOHAWA_OPS__PORT: String(ops),
      })
      const isReady = (): Promise<boolean> =>
        request(`http://127.0.0.1:${ops}/readyz`).then(
          async ({ statusCode, body }) => {
            await body.dump()
            return statusCode === 200
          },
          () => false,
        )
      await until('the new process is ready', isReady, 60_000, 10)
      readyMs.push(performance.now() - started)
      const second = await starting
      warmed.push(await metric(second.urls.ops ?? '', 'abohawa_cache_memory_entries'))
      const sendToSecond = senderTo(scope, second.urls.api ?? '', key)
      await forAll(paths, 32, async path => {
        sent += 1
        if ((await sendToSecond(path)).status !== 200) failed += 1
      })
      second.child.kill('SIGTERM')
      await second.exited
    }
    loading = false
    await background
    const fetched = (await provider.state()).points - points
    return {
      findings: [
        {
          what: `a new process with ${count(paths.length)} cells in the shared tier: cells requested from the provider`,
          bar: '0',
          measured: `${fetched} for ${count(sent)} requests over ${rounds} starts, ${failed} failed; ${count(median(warmed))} in memory when ready`,
          met: fetched === 0 && failed === 0,
          figures: { fetched, failed, warmed },
        },
        {
          what: 'the same: ready',
          bar: '< 2 s',
          measured: `${ms(median(readyMs))} median of ${rounds}, ${ms(Math.min(...readyMs))} best, ${ms(Math.max(...readyMs))} slowest (${count(served)} requests to the other meanwhile)`,
          met: median(readyMs) < 2_000,
          figures: { readyMs },
        },
      ],
    }
  },
}
