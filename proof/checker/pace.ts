// Promise 17: how fast a key is admitted that has a limit by the second. What a bucket holds at first is not known, so a window counts
// with all of it. Buckets refill by the clock of Redis or by that of a gateway: the time of both counts.

import type { Answer } from '../history.ts'
import { type Facts, isAdmitted, second } from './facts.ts'
import type { Rule } from './rule.ts'

/** The requests a second that an answer says its key may send; undefined for a key without such a limit. */
export const paceOf = ({ headers }: Answer): number | undefined => {
  const [, quota] = /"second";q=(\d+);w=1/.exec(headers['ratelimit-policy'] ?? '') ?? []
  return quota === undefined ? undefined : Number(quota)
}

/** The requests a second that a tier allows a key; undefined for no such limit. */
export const rateOf = ({ schedule }: Facts, tier: string | undefined): number | undefined => {
  const [, rate] = /perSecond: (\d+)/.exec(schedule.settings[`quota.rates.${tier}`] ?? '') ?? []
  return rate === undefined ? undefined : Number(rate)
}

/** More than the rate, for what moves between gateways. */
const share = 1.1

export const withinPace: Rule = (facts, report) => {
  const paced = facts.answers.filter(answer => isAdmitted(answer) && paceOf(answer) !== undefined)
  for (const [key, answers] of Map.groupBy(paced, ({ key }) => key)) {
    const inOrder = answers.toSorted((a, b) => a.sent.seq - b.sent.seq)
    inOrder.forEach((first, i) => {
      let [at, ms] = [first.at, first.ms]
      for (const [more, answer] of inOrder.slice(i).entries()) {
        ;[at, ms] = [Math.max(at, answer.at), Math.max(ms, answer.ms)]
        const pace = paceOf(answer) ?? 0
        if (pace !== paceOf(first) || !isQuiet(facts, first, answer)) break
        const passed = (at - first.sent.at + ms - first.sent.ms) / second
        const allowed = pace + share * pace * passed
        if (more + 1 > allowed) {
          report.broken(
            answer,
            `${key} was admitted ${more + 1} times in ${passed.toFixed(2)} s; ${allowed.toFixed(1)} were allowed`,
          )
          return
        }
      }
    })
    // Refused at all, so that it sent more than it may.
    if (facts.answers.some(answer => answer.key === key && isPaced(answer))) report.saw()
  }
}

/** Whether every gateway had Redis all the time between two answers and before, and none began. */
const isQuiet = ({ schedule, isUnsettled, lives, configured }: Facts, from: Answer, to: Answer): boolean => {
  const isMeanwhile = ({ seq }: { readonly seq: number }): boolean => seq > from.sent.seq && seq < to.seq
  return (
    ![...schedule.skews.keys()].some(gateway => isUnsettled(gateway, from.sent, to)) &&
    !lives.some(isMeanwhile) &&
    !configured.some(isMeanwhile)
  )
}

/** Whether it was refused for its pace; an answer to HEAD says so by what is left. */
export const isPaced = (answer: Answer): boolean =>
  answer.status === 429 &&
  (answer.method === 'HEAD' ? paceOf(answer) !== undefined : /"code":"rate_limited"/.test(answer.body))
