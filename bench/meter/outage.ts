// Redis that stops answering, and Redis that dies, under load: how long anyone notices, what is given meanwhile, and
// whether the counts are right when it is back.

import { setTimeout as pause } from 'node:timers/promises'
import { chart } from '../chart.ts'
import { issueKeys, usedToday } from '../keys.ts'
import { count, ms, type Row, type Scope, sorted } from '../row.ts'
import { metric, until } from '../set-up.ts'
import { type Asked, askOn, meterEnv, startGateways } from './fleet.ts'
import { type PlaceName, places } from './places.ts'

export type OutageSize = {
  readonly processes: number
  readonly connections: number
  readonly outageMs: number
  /** The daily limit of the key that is meant to run out during the outage. */
  readonly limit: number
}

export type OutageFound = {
  readonly normalP99: number
  /** From one second after the beginning until the end. */
  readonly outageP99: number
  /** From the return of Redis until every process counts together again. */
  readonly recoveryMs: number
  /** Of the key that ran out. */
  readonly given: number
  readonly limit: number
  /** How many answers of the other key were no 200 from one second after the beginning on. */
  readonly failed: number
  /** By how much the counts differ from what was given, for both keys: at the end of the load, and within 20 s. */
  readonly offAtFirst: number
  readonly miscounted: number
  /** By second since the load began: the slowest of 99 in 100, and what the key that ran out was given. */
  readonly bySecond: readonly { p99: number; given: number }[]
  readonly beganAtSecond: number
  readonly backAtSecond: number
}

const p99 = (answers: readonly Asked[]): number => {
  const times = sorted(answers.map(answer => answer.ms))
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN
}

export const measureRedisOutage = async (
  scope: Scope,
  kind: PlaceName,
  { processes, connections, outageMs, limit }: OutageSize,
): Promise<OutageFound> => {
  const place = await places[kind](scope)
  const env = meterEnv({ ...place.env, ABOHAWA_QUOTA__TIERS__SCARCE: String(limit) })
  const [plenty, scarce] = await issueKeys(env, ['enterprise', 'scarce'])
  if (!plenty || !scarce) throw new Error('no keys')
  const gateways = await startGateways(scope, env, { processes, connections })
  const everywhere = async (name: string, value: number): Promise<boolean> => {
    const values = await Promise.all(gateways.processes.map(({ urls }) => metric(urls.ops ?? '', name)))
    return values.every(one => one === value)
  }
  const allCount = () => everywhere('abohawa_quota_counting{state="counting"}', 1)

  const keys = [plenty.key, scarce.key]
  let asked = 0
  let isOver = false
  // A little rest between two requests: what is to be seen is waiting for Redis, not for the processor.
  const load = askOn(gateways.callers, () => (isOver ? undefined : keys[asked++ % 2]), 10)
  // Nobody deals alone before all know of one another.
  await until('all know of one another', () => everywhere('abohawa_instances', processes))
  await pause(6_500)

  const beganAt = performance.now()
  await place.strike(scarce.id)
  if (place.mend) await pause(outageMs)
  else await until('someone noticed', async () => !(await allCount()))
  const backAt = performance.now()
  await place.mend?.()
  await until('all count together', allCount)
  const countsAgainAt = performance.now()
  const recoveryMs = countsAgainAt - backAt
  await pause(1_000)
  isOver = true
  const answers = await load

  const firstAt = answers[0]?.at ?? 0
  const secondOf = (at: number): number => Math.floor((at - firstAt) / 1_000)
  const bySecond = Array.from({ length: secondOf(performance.now()) }, (_, second) => {
    const then = answers.filter(({ at }) => secondOf(at) === second)
    return {
      p99: then.length === 0 ? 0 : p99(then),
      given: then.filter(({ key, status }) => key === scarce.key && status === 200).length,
    }
  })
  const given = (key: string): number =>
    answers.filter(answer => answer.key === key && answer.status === 200).length
  const off = async (): Promise<number> => {
    const [usedPlenty = 0, usedScarce = 0] = await usedToday(env, [plenty.id, scarce.id])
    return Math.abs(usedPlenty - given(plenty.key)) + Math.abs(usedScarce - given(scarce.key))
  }
  // Sentinels may choose twice; the master between is left alone for eight seconds before it is told to follow. Only then
  // do those who counted with it say to the other what they gave.
  const patience = performance.now() + 20_000
  const offAtFirst = await off()
  let miscounted = offAtFirst
  while (miscounted > 0 && performance.now() < patience) miscounted = await off()
  const during = answers.filter(({ at }) => at >= beganAt + 1_000 && at < countsAgainAt)
  return {
    normalP99: p99(answers.filter(({ at }) => at >= beganAt - 3_000 && at < beganAt - 100)),
    outageP99: p99(during),
    recoveryMs,
    given: given(scarce.key),
    limit,
    failed: answers.filter(
      ({ at, key, status }) => at >= beganAt + 1_000 && key === plenty.key && status !== 200,
    ).length,
    bySecond,
    beganAtSecond: (beganAt - firstAt) / 1_000,
    backAtSecond: (backAt - firstAt) / 1_000,
    offAtFirst,
    miscounted,
  }
}

const full = { processes: 4, connections: 64, limit: 30_000 }

const rowOf = (kind: PlaceName, what: string, outageMs: number, method: string): Row => ({
  id: `redis-${kind}`,
  method,
  run: async scope => {
    const found = await measureRedisOutage(scope, kind, { ...full, outageMs })
    const { bySecond, beganAtSecond, backAtSecond } = found
    const drawing = {
      caption: `${what}: from second ${beganAtSecond.toFixed(0)} to ${backAtSecond.toFixed(0)}`,
      svg: chart({
        title: `${what}: seconds ${beganAtSecond.toFixed(0)} to ${backAtSecond.toFixed(0)}`,
        x: { label: 'seconds since the load began', max: bySecond.length, step: 5 },
        panels: [
          {
            label: 'p99 of all requests in ms',
            lines: [{ name: 'p99', points: bySecond.map((one, second) => [second, one.p99] as const) }],
          },
          {
            label: 'requests a second, of the key that runs out',
            lines: [{ name: 'given', points: bySecond.map((one, second) => [second, one.given] as const) }],
          },
        ],
      }),
    }
    const isFailover = kind === 'sentinel' || kind === 'cluster'
    return {
      ...(kind === 'frozen' && { drawings: { 'metering-outage.svg': drawing } }),
      findings: [
        {
          what: `${what}: p99 from one second on`,
          bar: '≤ normal + 20 ms',
          measured: `${ms(found.outageP99)}, and ${ms(found.normalP99)} before; ${found.failed} failed of a key with enough left`,
          met: found.outageP99 <= found.normalP99 + 20 && found.failed === 0,
          figures: { normalP99: found.normalP99, outageP99: found.outageP99, failed: found.failed },
        },
        {
          what: 'the same: given of a key that runs out',
          bar: `≤ ${count(full.limit)}${isFailover ? ', plus what the lost link can lose' : ''}`,
          measured: count(found.given),
          met: found.given <= full.limit,
          figures: { given: found.given },
        },
        {
          what: 'the same: counts afterwards beside what was given',
          bar: 'equal',
          measured:
            (found.miscounted === 0 ? 'equal' : `${found.miscounted} off`) +
            (found.offAtFirst > found.miscounted ? `, ${count(found.offAtFirst)} off at first` : ''),
          met: found.miscounted === 0,
          figures: { miscounted: found.miscounted },
        },
        {
          what: `the same: all processes count together again${isFailover ? ' after the loss' : ' after its return'}`,
          bar: isFailover ? '—' : '≤ 5 s',
          measured: ms(found.recoveryMs),
          met: isFailover ? null : found.recoveryMs <= 5_000,
          figures: { recoveryMs: found.recoveryMs },
        },
      ],
    }
  },
})

export const redisFrozen: Row = rowOf(
  'frozen',
  'Redis stopped with SIGSTOP for 20 s',
  20_000,
  '4 processes, 64 callers that rest 10 ms between two requests, two keys in turn: one with enough left and one that runs ' +
    'out during the outage. Redis writes an append-only file, keeps its connections and answers nothing for 20 s.',
)
export const redisKilled: Row = rowOf(
  'killed',
  'Redis killed, and back after 8 s',
  8_000,
  'The same with Redis killed (kill -9) and started again on its file 8 s later.',
)
export const sentinelFailover: Row = rowOf(
  'sentinel',
  'The master behind Sentinel killed',
  0,
  'The same with a master, two replicas and three sentinels (down-after 1 s): the master is killed, a replica takes over. ' +
    'Only what is asked from one second on until then is in the p99.',
)
export const clusterFailover: Row = rowOf(
  'cluster',
  'A master of a cluster killed',
  0,
  'The same with a cluster of three masters and three replicas (node timeout 1 s): the master of the key that runs out is killed.',
)
