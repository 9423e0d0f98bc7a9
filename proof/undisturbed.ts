// Runs a schedule again where it broke a promise while the machine stood still: nothing in a schedule says so, and what a gateway
// does that took Redis for away is no evidence.

import { judge } from './checker/judge.ts'
import type { Lane } from './fleet/lane.ts'
import type { History } from './history.ts'
import type { Verdict } from './promises.ts'
import { runSchedule } from './run.ts'
import type { Schedule } from './steps.ts'

// Half of what a gateway waits for Redis.
export const stalledAtMostMs = 150
/** Of one schedule: a start, too, waits only so long for Redis, however busy the machine is. */
const failedStartsAtMost = 20

/** `isDisturbed`: the last one broke a promise too, and proves nothing. */
export type Run = { readonly history: History; readonly verdict: Verdict; readonly isDisturbed: boolean }

/** @param attempts at most */
export const runUndisturbed = async (lane: Lane, schedule: Schedule, attempts: number): Promise<Run> => {
  let [attempt, failedStarts] = [0, 0]
  for (;;) {
    const history = await runSchedule(lane, schedule).catch(error => {
      failedStarts += 1
      if (failedStarts === failedStartsAtMost || !/did not answer within/.test(String(error))) throw error
    })
    if (!history) continue
    attempt += 1
    const verdict = judge(history)
    const isDisturbed = verdict.violations.length > 0 && history.stalledMs > stalledAtMostMs
    if (!isDisturbed || attempt === attempts) return { history, verdict, isDisturbed }
  }
}
