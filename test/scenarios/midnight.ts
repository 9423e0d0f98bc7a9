// Sends load across local midnight to processes whose clocks are off by a minute and a half. Assigns each response to its
// day, and compares the counts of both days.

import { once } from 'node:events'
import { createCalendar } from '../../src/common/calendar.ts'
import { startScript } from '../support/process.ts'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { openCallers } from './callers.ts'
import { issueKeys } from './keys.ts'
import { type Answer, meterEnv, patient, sendOn, usedOn } from './quota-load.ts'
import { metric, type Scope } from './set-up.ts'

const zone = 'Asia/Dhaka'
const script = new URL('../support/shifted-gateway.ts', import.meta.url).pathname

export type MidnightSize = {
  /** The clock skew of each process, in ms. */
  readonly skews: readonly number[]
  readonly connections: number
  /** Between a response and the caller's next request. */
  readonly pauseMs: number
  /** How long before midnight the load begins and how long after it ends. */
  readonly beforeMs: number
  readonly afterMs: number
  readonly limit: number
}

export type MidnightFound = {
  readonly byDay: readonly { admitted: number; refused: number; counted: number }[]
  /** Responses whose reset is neither of the two midnights. */
  readonly strays: number
  /** How long after the first response of the new day a request was still sent that counted for the old day, in ms. */
  readonly overlapMs: number
}

export const measureMidnight = async (
  scope: Scope,
  { skews, connections, pauseMs, beforeMs, afterMs, limit }: MidnightSize,
): Promise<MidnightFound> => {
  const redis = await startRedis()
  scope.teardown(redis.stop)
  const env = meterEnv({
    ...patient,
    ABOHAWA_REDIS__URL: redis.url,
    ABOHAWA_QUOTA__TIME_ZONE: zone,
    ABOHAWA_QUOTA__TIERS__SCARCE: String(limit),
  })
  const [issued] = await issueKeys(env, ['scarce'])
  if (!issued) throw new Error('no key')
  const calendar = createCalendar(zone)
  const processes = await Promise.all(
    skews.map(skew => startScript(scope, script, [String(skew)], ['api', 'ops'], env, true)),
  )
  const callers = (
    await Promise.all(
      processes.map(({ urls }) => openCallers(scope, urls.api ?? '', issued.key, connections / skews.length)),
    )
  ).flat()
  // A slow reply of the store says nothing of its clock.
  await Promise.all(
    processes.map(({ urls }, i) =>
      until(`gateway ${i} knows the store's clock`, async () => {
        const aheadMs = 1_000 * (await metric(urls.ops ?? '', 'abohawa_store_clock_offset_seconds'))
        return Math.abs(aheadMs + (skews[i] ?? 0)) < 1_000
      }),
    ),
  )
  // Set when all of them serve, however long that took.
  const midnight = calendar.nextMidnight(Date.now())
  const shift = midnight - beforeMs - Date.now()
  const now = () => Date.now() + shift
  const isOver = () => now() >= midnight + afterMs
  await Promise.all(
    processes.map(async ({ child }) => {
      const shifted = once(child, 'message')
      child.send(shift)
      await shifted
    }),
  )
  const answers = await sendOn(callers, () => (isOver() ? undefined : issued.key), pauseMs)

  const ends = [midnight, calendar.nextMidnight(midnight)]
  const days = [calendar.dayOf(midnight - 1), calendar.dayOf(midnight)]
  const counted = await usedOn(env, issued.id, days)
  const of = (end: number | undefined): Answer[] => answers.filter(({ reset }) => reset * 1000 === end)
  // Math.min would get too many arguments.
  const firstNew = of(ends[1]).reduce(
    (first, { at, ms }) => Math.min(first, at + ms),
    Number.POSITIVE_INFINITY,
  )
  const lastOld = of(ends[0]).reduce((last, { at }) => Math.max(last, at), Number.NEGATIVE_INFINITY)
  return {
    byDay: ends.map((end, i) => ({
      admitted: of(end).filter(({ status }) => status === 200).length,
      refused: of(end).filter(({ status }) => status === 429).length,
      counted: counted[i] ?? 0,
    })),
    strays: answers.length - of(ends[0]).length - of(ends[1]).length,
    overlapMs: Math.max(0, lastOld - firstNew),
  }
}
