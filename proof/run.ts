// Takes the steps of a schedule with a fleet and records what happens: the history. Then ends all faults, lets the promised time
// pass, and asks every gateway for everything again. Judges nothing.

import { setTimeout as pause } from 'node:timers/promises'
import { createFleetClock } from './fleet/clock.ts'
import { createFleet } from './fleet/fleet.ts'
import type { Lane } from './fleet/lane.ts'
import { watchStalls } from './fleet/stalls.ts'
import { type Answer, createRecorder, type History } from './history.ts'
import { finalPaths } from './mix.ts'
import { type PlannedRequest, type Schedule, type Step, statusPath } from './steps.ts'

const second = 1_000
const minute = 60 * second

// What holds after an outage takes seconds; what the provider limited by the hour, an hour.
const recoverySeconds = 80
// Subscriptions connect again after half a second of the machine's time, and gateways reconcile after that.
const reconnectedAfterMs = 900
const touchesStore = (step: Step): boolean =>
  ['link', 'store', 'empty', 'restart-store', 'drop-messages', 'fail-over'].includes(step.do)
// So do calls to the provider: a stalled one takes `provider.totalTimeout`, and one that it was too busy for is retried after a second.
const endedAfterMs = 900
const retriedAfterMs = 1_300
const touchesProvider = (step: Step): boolean => step.do === 'provider' || step.do === 'provider-link'
const isBusy = (step: Step): boolean =>
  step.do === 'provider' && 'mode' in step.fault && step.fault.mode === 'concurrent-limit'
const hourAndMore = 62 * minute
const [roundsAtLeast, roundsAtMost] = [2, 8]

export const runSchedule = async (lane: Lane, schedule: Schedule): Promise<History> => {
  const clock = createFleetClock(schedule.start)
  const recorder = createRecorder(clock.now)
  const fleet = await createFleet({ lane, schedule, clock, recorder })
  const { ping } = await lane.redis(schedule.store)
  const stalls = [watchStalls(ping), watchStalls(fleet.ping)]
  const longestStall = async (): Promise<number> =>
    Math.max(...(await Promise.all(stalls.map(each => each.end()))))
  try {
    for (const step of schedule.steps) await fleet.take(step)
    await fleet.endFaults()
    recorder.add({ kind: 'phase', phase: 'end' })
    const longestMs = Math.max(
      schedule.steps.some(touchesStore) ? reconnectedAfterMs : 0,
      schedule.steps.some(touchesProvider) ? endedAfterMs : 0,
      schedule.steps.some(isBusy) ? retriedAfterMs : 0,
    )
    const back = performance.now() + longestMs
    const isBack = async (): Promise<boolean> => performance.now() > back && (await fleet.isCalm())
    for (let i = 0; i < recoverySeconds && !(i > 5 && (await isBack())); i++) {
      await clock.advance(second)
      await pause(20)
    }
    await clock.advance(hourAndMore)
    // The first asks for what is stale, the second for what the budget of a minute did not have. On a slow machine the clock moves on
    // by minutes while a load is under way.
    let isFresh = false
    for (let i = 0; i < roundsAtLeast || (i < roundsAtMost && !isFresh); i++) {
      const begun = recorder.events.length
      await fleet.send(everywhere(fleet.size))
      isFresh = recorder.events.slice(begun).every(event => event.kind !== 'answer' || isFreshWeather(event))
      await clock.advance(65 * second)
      await pause(30)
    }
    recorder.add({ kind: 'phase', phase: 'judged' })
    await fleet.send(everywhere(fleet.size))
    await fleet.send(countsOf(fleet.keys(), fleet.size), { inTurn: true })
    await fleet.send(figuresOf(fleet.keys(), fleet.size), { inTurn: true })
    await fleet.recordReadiness()
    const { places, log } = fleet
    return { schedule, places, events: recorder.events, stalledMs: await longestStall(), log }
  } finally {
    await longestStall()
    await fleet.close()
  }
}

const isFreshWeather = ({ status, headers }: Answer): boolean =>
  status === 200 && /; ttl=[1-9]/.test(headers['cache-status'] ?? '')

const everywhere = (gateways: number): PlannedRequest[] =>
  finalPaths.flatMap(path =>
    Array.from({ length: gateways }, (_, gateway) => ({ gateway, key: 'plenty', path })),
  )

/** With each key at each gateway, so that the counts that all of them know can be compared. */
const countsOf = (keys: readonly string[], gateways: number): PlannedRequest[] =>
  keys.flatMap(key =>
    Array.from({ length: gateways }, (_, gateway) => ({
      gateway,
      key,
      path: '/locations?type=division&limit=1',
    })),
  )

/** What each gateway says of the fleet, and one of each key. */
const figuresOf = (keys: readonly string[], gateways: number): PlannedRequest[] => [
  ...Array.from({ length: gateways }, (_, gateway) => ({ gateway, key: 'plenty', path: statusPath })),
  ...keys.map((key, i) => ({ gateway: i % gateways, key, path: '/key' })),
]
