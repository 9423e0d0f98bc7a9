// Every cell of the box, more than memory may hold: whether the bound holds, and whether the process levels off.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createGrid } from '../../src/weather/cell.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { chart } from './chart.ts'
import { callersOf, folderOf, metricOf, type Row, startFleet } from './stage.ts'

const boundMiB = 256

export const memory: Row = {
  name: 'memory',
  what: `memory bound of ${boundMiB} MiB, every cell of the box at 0.05° asked for, twice`,
  bar: 'RSS levels off; the bound holds within 10 %',
  run: async scope => {
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const { gateways, key } = await startFleet(scope, 1, provider.url, {
      ABOHAWA_STORE__PATH: join(await folderOf(scope), 'store.db'),
      ABOHAWA_CACHE__CELL_DEGREES: '0.05',
      ABOHAWA_CACHE__MEMORY: `${boundMiB}MiB`,
      ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '250',
    })
    const [gateway] = gateways
    const callers = await callersOf(scope, gateway?.urls.api ?? '', key, 64)
    const resident = async () => {
      const status = await readFile(`/proc/${gateway?.child.pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
    }
    const accounted = async () => (await metricOf(gateway?.urls.ops, 'abohawa_cache_memory_bytes')) / 2 ** 20
    const cells = createGrid(0.05).cellsIn({ south: 20, west: 87.5, north: 27, east: 93 })
    const atStart = await resident()
    const rss: [number, number][] = [[0, atStart]]
    const held: [number, number][] = [[0, 0]]
    let most = 0
    const ends: number[] = []
    for (let pass = 0; pass < 2; pass++) {
      for (let i = 0; i < cells.length; i += 512) {
        const wave = cells.slice(i, i + 512)
        const left = [...wave]
        await Promise.all(
          Array.from({ length: 64 }, async () => {
            for (let cell = left.pop(); cell; cell = left.pop()) {
              const { status } = await callers.ask(`/weather/coords/${cell.latitude}/${cell.longitude}`)
              if (status !== 200) throw new Error(`${cell.id} answered ${status}`)
            }
          }),
        )
        const asked = pass * cells.length + i + wave.length
        const now = await accounted()
        most = Math.max(most, now)
        rss.push([asked, await resident()])
        held.push([asked, now])
        scope.progress(`${asked} of ${2 * cells.length}, RSS ${rss.at(-1)?.[1].toFixed(0)} MiB`)
      }
      ends.push(Math.max(...rss.slice(-8).map(([, value]) => value)))
    }
    const [firstEnd = 0, secondEnd = 0] = ends
    const grown = secondEnd - atStart
    return {
      measured: `accounted ${most.toFixed(0)} MiB at most; RSS ${atStart.toFixed(0)} MiB at the start, ${firstEnd.toFixed(0)} after the first pass, ${secondEnd.toFixed(0)} after the second`,
      met: most <= boundMiB * 1.1 && secondEnd <= firstEnd * 1.1,
      notes: [
        `${cells.length.toLocaleString('en')} cells of 17 to 19 kB; what has no room in memory comes from the shared tier the second time. RSS grew by ${grown.toFixed(0)} MiB ` +
          `for ${(held.at(-1)?.[1] ?? 0).toFixed(0)} MiB of weather: the rest is the heap of a process that decodes and answers, which the collector gives back late.`,
        '![memory over the requests](capacity-memory.svg)',
      ],
      plots: {
        'capacity-memory.svg': chart({
          title: 'Memory while every cell is asked for, twice',
          x: { label: 'requests', max: Math.ceil((2 * cells.length) / 4_000) * 4_000, step: 4_000 },
          panels: [
            { label: 'resident memory of the process, MiB', points: rss },
            { label: 'weather in memory as accounted, MiB', points: held, max: 320 },
          ],
        }),
      },
    }
  },
}
