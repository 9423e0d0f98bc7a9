// Shrinks a schedule that breaks a promise: leaves out groups of steps, then requests, and keeps what still breaks it, for as
// long as that is cheap. A fault and its end are left out together.

import type { Schedule, Step } from './steps.ts'

export type ShrinkBounds = { readonly maxRuns: number; readonly maxMs: number }

const usualBounds: ShrinkBounds = { maxRuns: 40, maxMs: 90_000 }

/** @param breaks runs a schedule; whether it breaks the same promise */
export const shrink = async (
  failing: Schedule,
  breaks: (schedule: Schedule) => Promise<boolean>,
  { maxRuns, maxMs }: ShrinkBounds = usualBounds,
): Promise<Schedule> => {
  const deadline = performance.now() + maxMs
  let smallest = failing
  let runs = 0
  const keepIf = async (candidate: Schedule): Promise<boolean> => {
    if (runs >= maxRuns || performance.now() > deadline) return false
    runs += 1
    if (!(await breaks(candidate).catch(() => false))) return false
    smallest = candidate
    return true
  }
  // Large groups first: most of a history has nothing to do with what it broke.
  for (let size = Math.ceil(smallest.steps.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let from = smallest.steps.length - size; from >= 0; from -= size)
      await keepIf(withoutSteps(smallest, from, size))
  for (let i = smallest.steps.length - 1; i >= 0; i--) {
    for (;;) {
      const fewer = withFewerRequests(smallest, i)
      if (!fewer || !(await keepIf(fewer))) break
    }
  }
  return smallest
}

/** Also without the ends of faults that did not begin, and without the begins of those that are not ended by themselves. */
const withoutSteps = (schedule: Schedule, from: number, count: number): Schedule => {
  const steps = schedule.steps.filter((_, i) => i < from || i >= from + count)
  const begun = new Set(steps.flatMap(step => ('id' in step && step.do !== 'heal' ? [step.id] : [])))
  return { ...schedule, steps: steps.filter(step => step.do !== 'heal' || begun.has(step.id)) }
}

const withFewerRequests = (schedule: Schedule, at: number): Schedule | undefined => {
  const step = schedule.steps[at]
  const requests = step?.do === 'load' ? step.requests : undefined
  if (!requests || requests.length < 2) return undefined
  const fewer: Step = {
    ...(step as Step & { do: 'load' }),
    requests: requests.slice(0, requests.length >> 1),
  }
  return { ...schedule, steps: schedule.steps.with(at, fewer) }
}
