// The steps of a run: counts and histograms for each interval, which doubles as the run goes on.

import type { Histogram } from 'hdr-histogram-js'
import type { Step } from '../report/result.ts'
import { coarse, decoded, encoded } from './histograms.ts'

type StepCounts = Pick<Step, 'due' | 'sent' | 'answered' | 'failed' | 'hits' | 'stale' | 'misses'> & {
  errors: number
}
export type StepForm = StepCounts & {
  readonly at: number
  readonly lateMs: number
  readonly latency: string
  readonly age: string
}
export type LiveStep = StepCounts & { lateMs: number; latency: Histogram; age: Histogram | undefined }

// Beyond this many, two steps become one, so that a run of any length has a readable plot and bounded memory.
const maxSteps = 600

/** @param beginSeconds the length of a step at the beginning */
export const createSteps = (beginSeconds: number) => {
  let seconds = beginSeconds
  let steps: LiveStep[] = []

  const at = (ms: number): LiveStep => {
    let index = Math.max(0, Math.floor(ms / 1000 / seconds))
    while (index >= maxSteps) {
      widen()
      index = Math.floor(index / 2)
    }
    return own(index)
  }
  const widen = (): void => {
    const before = steps
    steps = []
    seconds *= 2
    for (const [i, step] of before.entries()) addStep(own(Math.floor(i / 2)), step)
  }
  const own = (index: number): LiveStep => {
    while (steps.length <= index)
      steps.push({
        due: 0,
        sent: 0,
        answered: 0,
        failed: 0,
        errors: 0,
        hits: 0,
        stale: 0,
        misses: 0,
        lateMs: 0,
        latency: coarse(),
        age: undefined,
      })
    return steps[index] as LiveStep
  }

  return {
    at,
    seconds: () => seconds,
    form: (): StepForm[] =>
      steps.map(({ latency, age, ...step }, i) => ({
        ...step,
        at: i * seconds,
        latency: latency.totalCount === 0 ? '' : encoded(latency),
        age: age ? encoded(age) : '',
      })),
    add: (others: readonly StepForm[], otherSeconds: number): void => {
      while (seconds < otherSeconds) widen()
      for (const { at: begin, latency, age, ...step } of others)
        addStep(at(begin * 1000), {
          ...step,
          latency: latency === '' ? undefined : decoded(latency),
          age: age === '' ? undefined : decoded(age),
        })
    },
    all: (): Step[] =>
      steps.map(({ lateMs: delay, latency, age, ...step }, i) => ({
        at: i * seconds,
        ...step,
        p50: latency.totalCount === 0 ? null : latency.getValueAtPercentile(50) / 1000,
        p99: latency.totalCount === 0 ? null : latency.getValueAtPercentile(99) / 1000,
        late: step.sent === 0 ? null : delay,
        age50: age ? age.getValueAtPercentile(50) : null,
        ageMax: age ? age.getValueAtPercentile(100) : null,
        weight: null,
        ...(latency.totalCount === 0 ? {} : { histogram: encoded(latency) }),
      })),
  }
}

const addStep = (
  to: LiveStep,
  { lateMs: delay, latency, age, ...step }: Omit<LiveStep, 'latency'> & { latency: Histogram | undefined },
): void => {
  addTo(to as unknown as Record<string, number>, step)
  to.lateMs = Math.max(to.lateMs, delay)
  if (latency) to.latency.add(latency)
  if (!age) return
  to.age ??= coarse()
  to.age.add(age)
}

/** Adds counts by name. */
export const addTo = (to: Record<string, number>, more: Readonly<Record<string, number>>): void => {
  for (const [name, count] of Object.entries(more)) if (name !== 'at') to[name] = (to[name] ?? 0) + count
}
