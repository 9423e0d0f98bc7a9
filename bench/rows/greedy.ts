// One key that requests new cells as fast as it can, beside two others: the latency of a new cell for another key, whether it is
// always answered, and the latency of hits meanwhile.

import { setTimeout as pause } from 'node:timers/promises'
import { type Caller, openCallers, type TimedResponse } from '../../test/scenarios/callers.ts'
import { createKey, type Env, processEnv, type Scope, startProcess } from '../../test/scenarios/set-up.ts'
import { count, judged, median, ms, type Progress, quantile, type Row } from '../row.ts'
import { openBackground } from '../tools/world.ts'

const latencyMs = 30
const roundMs = 4_000
const inFlight = 16
const perDay = 10_000

// At 0.02° the box has 96,000 cells: none is requested twice.
const cells = { degrees: '0.02', perLine: 270 }

const setUp = async (scope: Scope, limits: Env) => {
  const { provider, redisUrl } = await openBackground(scope)
  const env = processEnv(provider.url, {
    ABOHAWA_REDIS__URL: redisUrl,
    ABOHAWA_CACHE__CELL_DEGREES: cells.degrees,
    ...limits,
  })
  const keys = [await createKey(env), await createKey(env), await createKey(env)] as const
  const { urls } = await startProcess(scope, env)
  await provider.steer({ latencyMs })
  const callersOf = (key: string, callers: number) => openCallers(scope, urls.api ?? '', key, callers)
  const greedy = await callersOf(keys[0], inFlight)
  const [other, reader] = [await callersOf(keys[1], 1), await callersOf(keys[2], 1)].flat()
  if (!other || !reader) throw new Error('there are two callers')
  return { greedy, other, reader }
}

let requested = 0
const newCell = (): string => {
  requested += 1
  const [line, column] = [Math.floor(requested / cells.perLine), requested % cells.perLine]
  return `/api/v1/weather/coords/${(20.01 + line / 50).toFixed(2)}/${(87.51 + column / 50).toFixed(2)}`
}
const warmCell = '/api/v1/weather/coords/26.99/92.99'

type Times = { misses: number[]; hits: number[]; failed: number }

/** A new cell every 100 ms, and a hit every 4 ms, for a round. */
const readersRound = async (other: Caller, reader: Caller, times: Times): Promise<void> => {
  const until = performance.now() + roundMs
  const repeat = async (everyMs: number, act: () => Promise<void>): Promise<void> => {
    for (let due = performance.now(); due < until; due += everyMs) {
      await pause(Math.max(0, due - performance.now()))
      await act()
    }
  }
  const note = ({ status, ms: took }: TimedResponse, kind: 'misses' | 'hits'): void => {
    if (status === 200) times[kind].push(took)
    else times.failed += 1
  }
  await Promise.all([
    repeat(100, async () => note(await other.send(newCell()), 'misses')),
    repeat(4, async () => note(await reader.send(warmCell), 'hits')),
  ])
}

const measure = async (scope: Scope, rounds: number, limits: Env, progress: Progress) => {
  const { greedy, other, reader } = await setUp(scope, limits)
  await reader.send(warmCell)
  await other.send(newCell())
  const alone: Times = { misses: [], hits: [], failed: 0 }
  const beside: Times = { misses: [], hits: [], failed: 0 }
  const hitRatios: number[] = []
  let [loaded, refused] = [0, 0]
  for (let round = 1; round <= rounds; round++) {
    progress(`round ${round} of ${rounds}`)
    const [quiet, busy] = [alone.hits.length, beside.hits.length]
    await readersRound(other, reader, alone)
    let isOver = false
    const endsAt = performance.now() + 10 * roundMs
    const flood = Promise.all(
      greedy.map(async caller => {
        while (!isOver && performance.now() < endsAt) {
          const { status } = await caller.send(newCell())
          if (status === 200) loaded += 1
          else refused += 1
          // Like a client that tries again soon.
          if (status !== 200) await pause(20)
        }
      }),
    )
    await readersRound(other, reader, beside)
    isOver = true
    await flood
    hitRatios.push(quantile(beside.hits.slice(busy), 0.99) / quantile(alone.hits.slice(quiet), 0.99))
  }
  return { alone, beside, loaded, refused, hitRatios }
}

export const greedyKey: Row = {
  id: 'greedy',
  what: 'a key that requests new cells as fast as it can, beside others',
  run: async (scope, { rounds }, progress) => {
    const free = await measure(scope, rounds, {}, text => progress(`no limits, ${text}`))
    const limits = { ABOHAWA_PROVIDER__BUDGET__PER_DAY: String(perDay) }
    const limited = await measure(scope, rounds, limits, text => progress(`${count(perDay)} a day, ${text}`))
    const all = Object.entries({ 'no limits': free, [`${count(perDay)} a day`]: limited })
    return {
      findings: all.flatMap(([name, { alone, beside, loaded, refused, hitRatios }]) => {
        const [quiet, busy] = [median(alone.misses), median(beside.misses)]
        const ratio = median(hitRatios)
        return [
          judged(
            `${name}: a new cell of another key, beside one that requests new cells as fast as it can`,
            '< 3 × alone, and always answered',
            busy < 3 * quiet && beside.failed === 0,
            `${ms(busy)} of ${ms(quiet)} median, ${ms(quantile(beside.misses, 0.95))} of ${ms(quantile(alone.misses, 0.95))} at p95; ${beside.failed} failed; the first key loaded ${count(loaded)}, ${count(refused)} refused`,
          ),
          judged(
            `${name}: hits meanwhile, p99`,
            '≤ 1.3 × quiet, median of the rounds',
            ratio <= 1.3,
            `${ratio.toFixed(2)} × (${ms(quantile(beside.hits, 0.99))} of ${ms(quantile(alone.hits, 0.99))}; medians ${ms(median(beside.hits))} of ${ms(median(alone.hits))})`,
          ),
        ]
      }),
    }
  },
}
