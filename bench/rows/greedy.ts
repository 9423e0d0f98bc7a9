// One key that requests new cells as fast as it can, beside two others: the latency of a new cell for another key, whether it is
// always answered, and the latency of hits meanwhile.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Caller, openCallers } from '../../test/scenarios/callers.ts'
import { createKey, type Env, processEnv } from '../../test/scenarios/set-up.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { warmUp } from '../rounds.ts'
import { count, judged, median, ms, type Progress, quantile, type Row } from '../row.ts'
import { startGateway } from '../tools/gateway-process.ts'
import { inFront, serverCore } from '../tools/processes.ts'
import { type Replayed, replayMix } from '../tools/replay.ts'
import { openBackground } from '../tools/world.ts'

const latencyMs = 30
const roundSeconds = 4
/** Of the reader, a second. */
const readRate = 250
const inFlight = 16
const perDay = 10_000

// At 0.02° the box has 96,000 cells: none is requested twice.
const cells = { degrees: '0.02', perLine: 270 }

const setUp = async (scope: Teardown, limits: Env) => {
  const { folder, provider, redisUrl } = await openBackground(scope)
  const env = processEnv(provider.url, {
    ABOHAWA_REDIS__URL: redisUrl,
    ABOHAWA_CACHE__CELL_DEGREES: cells.degrees,
    // Warming may take as many units as a key has.
    ABOHAWA_QUOTA__TIERS__ENTERPRISE: '1000000000',
    ...limits,
  })
  const [first, second, third] = [await createKey(env), await createKey(env), await createKey(env)]
  const { urls } = await startGateway(scope, folder, serverCore, env)
  const url = urls.api ?? ''
  await provider.steer({ latencyMs })
  const greedy = await openCallers(scope, url, first, inFlight)
  const [other] = await openCallers(scope, url, second, 1)
  if (!other) throw new Error('there is a caller')
  const file = join(folder, 'reader.ndjson')
  await writeFile(
    file,
    `${JSON.stringify({ at: '2026-01-01T00:00:00.000Z', method: 'GET', path: warmCell, key: 'key-0001' })}\n`,
  )
  const read = (): Promise<Replayed> =>
    replayMix(
      folder,
      { file, requests: [] },
      { url, keys: [third], rate: readRate, seconds: roundSeconds, connections: 4 },
      inFront,
    )
  const workload = { url, paths: [warmCell], keys: [third] }
  const warm = (): Promise<void> => warmUp(folder, { workload: async () => workload })
  return { greedy, other, read, warm }
}

let requested = 0
const newCell = (): string => {
  requested += 1
  const [line, column] = [Math.floor(requested / cells.perLine), requested % cells.perLine]
  return `/api/v1/weather/coords/${(20.01 + line / 50).toFixed(2)}/${(87.51 + column / 50).toFixed(2)}`
}
const warmCell = '/api/v1/weather/coords/26.99/92.99'

type Times = { readonly misses: number[]; readonly hits: Replayed[]; failed: number }

/** A new cell every 100 ms beside the reader, for a round. */
const readersRound = async (other: Caller, read: () => Promise<Replayed>, times: Times): Promise<void> => {
  let isOver = false
  const misses = async (): Promise<void> => {
    for (let due = performance.now(); !isOver; due += 100) {
      await pause(Math.max(0, due - performance.now()))
      const { status, ms: took } = await other.send(newCell())
      if (status === 200) times.misses.push(took)
      else times.failed += 1
    }
  }
  const missing = misses()
  const hits = await read()
  isOver = true
  await missing
  times.hits.push(hits)
  times.failed += hits.wrong + hits.failed + hits.dropped
}

const measure = async (scope: Teardown, rounds: number, limits: Env, progress: Progress) => {
  const { greedy, other, read, warm } = await setUp(scope, limits)
  const noTimes = (): Times => ({ misses: [], hits: [], failed: 0 })
  progress('warms up')
  await warm()
  await readersRound(other, read, noTimes())
  const [alone, beside] = [noTimes(), noTimes()]
  let [loaded, refused] = [0, 0]
  for (let round = 1; round <= rounds; round++) {
    progress(`round ${round} of ${rounds}`)
    await readersRound(other, read, alone)
    let isOver = false
    const endsAt = performance.now() + 10_000 * roundSeconds
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
    await readersRound(other, read, beside)
    isOver = true
    await flood
  }
  return { alone, beside, loaded, refused }
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
      findings: all.flatMap(([name, { alone, beside, loaded, refused }]) => {
        const [quiet, busy] = [median(alone.misses), median(beside.misses)]
        const ratio = median(beside.hits.map(({ p99 }, i) => p99 / (alone.hits[i]?.p99 ?? Number.NaN)))
        const hitsOf = ({ hits }: Times, of: 'p50' | 'p99'): string => ms(median(hits.map(one => one[of])))
        return [
          judged(
            `${name}: another key’s new cell`,
            '< 3 × quiet, none failed',
            busy < 3 * quiet && beside.failed === 0,
            `${ms(busy)} of ${ms(quiet)} median, ${ms(quantile(beside.misses, 0.95))} of ${ms(quantile(alone.misses, 0.95))} at p95; ${beside.failed} failed; the greedy key loaded ${count(loaded)}, ${count(refused)} refused`,
          ),
          judged(
            `${name}: p99 of hits`,
            '≤ 1.3 × quiet',
            ratio <= 1.3,
            `${ratio.toFixed(2)} × (${hitsOf(beside, 'p99')} of ${hitsOf(alone, 'p99')}; medians ${hitsOf(beside, 'p50')} of ${hitsOf(alone, 'p50')})`,
          ),
        ]
      }),
    }
  },
}
