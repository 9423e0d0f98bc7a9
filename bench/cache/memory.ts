// The memory of a process that serves every cell of a fine grid three times over: whether the bound on the cache holds, and
// whether the resident memory levels off.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGrid } from '../../src/weather/cell.ts'
import {
  box,
  createKey,
  forAll,
  metric,
  pathOf,
  processEnv,
  senderTo,
  startProcess,
} from '../../test/scenarios/set-up.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { chart } from '../chart.ts'
import { count, type Row } from '../row.ts'

const boundMiB = 256

export const memory: Row = {
  id: 'memory',
  method:
    `One gateway process with cache.memory ${boundMiB}MiB and cells of 0.05°, all cells of the box requested three times: ` +
    'loaded, then read twice at full speed, with 64 callers; resident memory as the kernel reports it, four times a second.',
  run: async (scope, progress) => {
    const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
    scope.teardown(() => rm(folder, { recursive: true, force: true }))
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const env = processEnv(provider.url, {
      ABOHAWA_STORE__PATH: join(folder, 'store.db'),
      ABOHAWA_CACHE__MEMORY: `${boundMiB}MiB`,
      ABOHAWA_CACHE__CELL_DEGREES: '0.05',
    })
    const key = await createKey(env)
    const gateway = await startProcess(scope, env)
    const ops = gateway.urls.ops ?? ''
    const send = senderTo(scope, gateway.urls.api ?? '', key, 64)
    const resident = async (): Promise<number> => {
      const status = await readFile(`/proc/${gateway.child.pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
    }
    const accounted = async (): Promise<number> => (await metric(ops, 'abohawa_cache_memory_bytes')) / 2 ** 20

    const paths = createGrid(0.05).cellsIn(box).map(pathOf)
    const started = performance.now()
    const rss: [number, number][] = [[0, await resident()]]
    const bytes: [number, number][] = [[0, 0]]
    const secondsIn = (): number => (performance.now() - started) / 1000
    const sampler = setInterval(async () => {
      rss.push([secondsIn(), await resident()])
      bytes.push([secondsIn(), await accounted()])
    }, 250)
    scope.teardown(() => clearInterval(sampler))
    let failed = 0
    const ends: number[] = []
    const turns: number[] = []
    for (const pass of [1, 2, 3]) {
      let done = 0
      await forAll(paths, 64, async path => {
        if ((await send(path)).status !== 200) failed += 1
        done += 1
        if (done % 1_000 === 0) progress(`pass ${pass}, ${count(done)} of ${count(paths.length)}`)
      })
      ends.push(await resident())
      turns.push(secondsIn())
    }
    clearInterval(sampler)
    const empty = rss[0]?.[1] ?? 0
    const [afterFirst = 0, afterSecond = 0, afterThird = 0] = ends
    const held = await accounted()
    const entries = await metric(ops, 'abohawa_cache_memory_entries')
    const most = Math.max(...bytes.map(([, value]) => value))
    const growth = afterThird / afterSecond - 1
    return {
      findings: [
        {
          what: `memory with cache.memory ${boundMiB} MiB, ${count(paths.length)} cells: accounted bytes`,
          bar: `≤ ${boundMiB} MiB`,
          measured: `${most.toFixed(0)} MiB at most, ${count(entries)} timelines held; ${failed} of ${count(3 * paths.length)} requests failed`,
          met: most <= boundMiB && failed === 0,
          figures: { maxMiB: most, entries, failed },
        },
        {
          what: 'the same: growth of the process in the last pass',
          bar: '≤ 10 %',
          measured: `${(growth * 100).toFixed(1)} % (${ends.map(end => end.toFixed(0)).join(', ')} MiB resident after each)`,
          met: growth <= 0.1,
          figures: { afterFirst, afterSecond, afterThird },
        },
        {
          what: 'the same: growth of the process since its start, compared with the accounted bytes',
          bar: '—',
          measured: `${(afterThird - empty).toFixed(0)} MiB over ${empty.toFixed(0)} MiB at the start, for ${held.toFixed(0)} MiB accounted`,
          met: null,
          figures: { empty, held, grown: afterThird - empty },
        },
      ],
      drawings: {
        'capacity-memory.svg': {
          caption:
            'Resident memory of a gateway and what its cache accounts for, all cells of a fine grid requested three times',
          svg: chart({
            title: `Memory while ${count(paths.length)} cells are requested three times (first pass ends at ${(turns[0] ?? 0).toFixed(0)} s)`,
            x: { label: 'seconds', max: secondsIn(), step: secondsIn() > 60 ? 20 : 10 },
            panels: [
              {
                label: 'MiB',
                lines: [
                  { name: 'resident', points: rss },
                  { name: 'accounted', points: bytes },
                  {
                    name: 'bound',
                    points: [
                      [0, boundMiB],
                      [secondsIn(), boundMiB],
                    ],
                  },
                ],
              },
            ],
          }),
        },
      },
    }
  },
}
