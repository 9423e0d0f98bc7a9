// Four gateway processes on one Redis and many callers of one cold cell: undisturbed, with the loading process killed, and
// with Redis stopped while everybody waits.

import {
  type FleetSize,
  killLeaseHolder,
  killRedis,
  sendAll,
  startFleet,
  warm,
} from '../../test/scenarios/stampede.ts'
import { count, median, ms, type Row, sorted } from '../row.ts'

const full: FleetSize = { processes: 4, callersEach: 250 }
const latencyMs = 300
const rounds = 7

const pathOfRound = (round: number): string => `/api/v1/weather/coords/${21 + round * 0.1}/${90}`

const bad = (answers: readonly { status: number }[]): number =>
  answers.filter(({ status }) => status !== 200).length

export const stampede: Row = {
  id: 'stampede',
  method:
    '1,000 kept connections, opened beforehand and warmed with 4,000 requests for another cell, write the same request ' +
    'in one turn of the event loop; each is timed from its own write to its last byte. The caller, the provider and ' +
    'Redis run on the machine too, so their work is in the times.',
  run: async (scope, progress) => {
    const fleet = await startFleet(scope, full)
    await warm(fleet)
    await fleet.provider.steer({ latencyMs })
    const alone: number[] = []
    const slowest: number[] = []
    const warmMs: number[] = []
    const calls: number[] = []
    let failed = 0
    for (let round = 0; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      const lone = (await fleet.gateways[0]?.callers[0]?.send(pathOfRound(round).replace('/90', '/91')))?.ms
      const before = (await fleet.provider.state()).calls
      const answers = await sendAll(fleet.gateways, pathOfRound(round))
      // The first round is a warm-up.
      if (round === 0) continue
      alone.push(lone ?? Number.NaN)
      calls.push((await fleet.provider.state()).calls - before)
      slowest.push(sorted(answers.map(answer => answer.ms)).at(-1) ?? Number.NaN)
      failed += bad(answers)
      // The same callers and the same cell, now from memory: the cost of the requests alone.
      const again = await sendAll(fleet.gateways, pathOfRound(round))
      warmMs.push(sorted(again.map(answer => answer.ms)).at(-1) ?? Number.NaN)
    }
    const [best, middle, most] = [Math.min(...slowest), median(slowest), Math.max(...calls)]
    return {
      findings: [
        {
          what: '4 processes × 250 simultaneous cold requests for one cell: provider requests',
          bar: '= 1',
          measured: `${most} in each of ${rounds} rounds at most; ${failed} of ${count(rounds * 1_000)} not answered with 200`,
          met: most === 1 && failed === 0,
          figures: { calls, failed },
        },
        {
          what: `the same: slowest caller, provider latency ${latencyMs} ms`,
          bar: `≤ ${latencyMs + 50} ms`,
          measured:
            `${ms(middle)} median of ${rounds} rounds, ${ms(best)} best; a lone cold request ${ms(median(alone))}, ` +
            `the slowest of the same 1,000 on the warm cell ${ms(median(warmMs))}`,
          met: middle <= latencyMs + 50,
          figures: { slowest, alone, warmMs },
        },
      ],
    }
  },
}

export const leaseHolderKilled: Row = {
  id: 'holder-killed',
  method:
    'One process starts alone, until its request waits for the provider; then the others get their requests; once all of them are ' +
    'admitted, the first is killed (kill -9). The provider answers when the next request has come.',
  run: async scope => {
    const fleet = await startFleet(scope, full)
    const { calls, answers, takenOverMs, allMs } = await killLeaseHolder(fleet, pathOfRound(0))
    return {
      findings: [
        {
          what: 'the same with the fetching process killed (kill -9) in the middle',
          bar: '≤ 2 provider requests, every caller of the others answered',
          measured:
            `${calls} requests, ${count(answers.length - bad(answers))} of ${count(answers.length)} answered; ` +
            `taken over after ${ms(takenOverMs)} (cache.leaseFor 2 s), all answered after ${ms(allMs)}`,
          met: calls <= 2 && bad(answers) === 0,
          figures: { calls, answered: answers.length - bad(answers), takenOverMs, allMs },
        },
      ],
    }
  },
}

export const redisKilled: Row = {
  id: 'redis-killed',
  method:
    'All 1,000 requests are admitted and wait for a held provider; then Redis ends; then the provider answers.',
  run: async scope => {
    const fleet = await startFleet(scope, full)
    await warm(fleet)
    const { calls, answers, allMs } = await killRedis(fleet, pathOfRound(0))
    return {
      findings: [
        {
          what: 'the same with Redis stopped in the middle',
          bar: '≤ 1 provider request per process (4), all answered',
          measured: `${calls} requests, ${count(answers.length - bad(answers))} of ${count(answers.length)} answered, the last ${ms(allMs)} after`,
          met: calls <= full.processes && bad(answers) === 0,
          figures: { calls, answered: answers.length - bad(answers), allMs },
        },
      ],
    }
  },
}
