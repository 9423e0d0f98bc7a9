// Promise 12: what the provider saw never weighs more than the limit of a window. A window's first seconds are left out, because a
// request that was charged before them may arrive in them. Not promised, and not checked: clocks that differ by more than two
// seconds, and what comes after Redis lost its data, or a gateway died or began while Redis was away or the disk of its store full.

import type { Moment } from '../history.ts'
import { day, hour, isoOf, last, minute, second } from './facts.ts'
import type { Rule } from './rule.ts'

const windows = { perMinute: minute, perHour: hour, perDay: day }

const clockDifferenceMs = 2 * second
// The longest call, on a clock that creeps on while answers are awaited.
const chargedBeforeMs = 7 * second

export const withinBudget: Rule = (facts, report) => {
  const { lives, said, skewSpan, steps, configured } = facts
  if (skewSpan > clockDifferenceMs) return
  const uncovered = lives.filter(
    life =>
      (life.what === 'killed' || (life.what === 'started' && life.seq > (steps[0]?.seq ?? 0))) &&
      facts.isUnsettled(life.gateway, life),
  )
  // What was spent on a full disk is known to the gateway that spent it only.
  const isFull = ({ seq }: Moment): boolean =>
    steps.some(
      ({ step, seq: from }) =>
        step.do === 'store' &&
        from < seq &&
        !steps.some(each => each.step.do === 'heal' && each.step.id === step.id && each.seq < seq),
    )
  const forgotten = facts.schedule.store === 'embedded' ? lives.filter(isFull) : []
  const losses = [...uncovered, ...forgotten, ...steps.filter(({ step }) => step.do === 'empty')]
  const until = Math.min(last, ...losses.map(({ seq }) => seq))
  for (const [name, ms] of Object.entries(windows)) {
    const used = new Map<number, { weight: number; seq: number }>()
    for (const { arrivedAt, weight, seq, upstream } of said) {
      // A fallback has no limit here.
      if (upstream === 'fallback-1') continue
      const begin = Math.floor(arrivedAt / ms) * ms
      if (seq > until || arrivedAt - begin < chargedBeforeMs) continue
      used.set(begin, { weight: (used.get(begin)?.weight ?? 0) + weight, seq })
    }
    for (const [begin, { weight, seq }] of used) {
      const inForce = [
        facts.settingsAt(configured.findLast(({ at }) => at < begin)?.seq ?? 0),
        ...configured.filter(({ at }) => at >= begin && at < begin + ms).map(({ settings }) => settings),
      ].flatMap(settings => settings[`provider.budget.${name}`] ?? [])
      if (inForce.length === 0 || inForce.includes('')) continue
      const limit = Math.max(...inForce.map(Number))
      report.saw()
      if (weight > limit + 1e-6)
        report.broken({ seq }, `the provider saw ${weight} of ${limit} ${name} from ${isoOf(begin)} on`)
    }
  }
}
