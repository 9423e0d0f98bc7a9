// The steps of a run: counts and histograms per interval, which doubles in long runs.

import { encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js'
import { latencyAt } from '../report/histogram.ts'
import type { Step } from '../report/result.ts'
import { addEncoded, coarse } from './histograms.ts'

const none = { due: 0, sent: 0, answered: 0, failed: 0, errors: 0, hits: 0, stale: 0, misses: 0 }
type LiveStep = { -readonly [Count in keyof typeof none]: number } & {
  late: number
  readonly latency: Histogram
  age: Histogram | undefined
}
/** With latencies and ages as compressed histograms, or empty. */
export type StepForm = Step & { readonly latencies: string; readonly ages: string }

// Beyond this, two steps become one: bounded memory for any run.
const maxSteps = 600

/** @param beginSeconds the first length of a step */
export const createSteps = (beginSeconds: number) => {
  let seconds = beginSeconds
  let steps: LiveStep[] = []

  const at = (ms: number): LiveStep => {
    let index = Math.max(0, Math.floor(ms / 1000 / seconds))
    while (index >= maxSteps) {
      widen()
      index = Math.floor(index / 2)
    }
    while (steps.length <= index) steps.push({ ...none, late: 0, latency: coarse(), age: undefined })
    return steps[index] as LiveStep
  }
  const widen = (): void => {
    const before = steps
    steps = []
    seconds *= 2
    for (const [i, step] of before.entries()) {
      const to = addStep(at((i * seconds * 1000) / 2), step)
      to.latency.add(step.latency)
      if (!step.age) continue
      to.age ??= coarse()
      to.age.add(step.age)
    }
  }

  return {
    at,
    seconds: () => seconds,
    add: (others: readonly StepForm[], otherSeconds: number): void => {
      while (seconds < otherSeconds) widen()
      for (const step of others) {
        const to = addStep(at(step.at * 1000), step)
        addEncoded(to.latency, step.latencies)
        if (step.ages !== '') to.age = addEncoded(to.age ?? coarse(), step.ages)
      }
    },
    form: (): StepForm[] =>
      steps.map(({ late, latency, age, ...counts }, i) => ({
        at: i * seconds,
        ...counts,
        p50: latency.totalCount === 0 ? null : latencyAt(latency, 50),
        p99: latency.totalCount === 0 ? null : latencyAt(latency, 99),
        late: counts.sent === 0 ? null : late,
        age50: age ? age.getValueAtPercentile(50) : null,
        ageMax: age ? age.getValueAtPercentile(100) : null,
        weight: null,
        latencies: latency.totalCount === 0 ? '' : encodeIntoCompressedBase64(latency),
        ages: age ? encodeIntoCompressedBase64(age) : '',
      })),
  }
}

const addStep = (to: LiveStep, step: Pick<LiveStep, keyof typeof none> & Pick<Step, 'late'>): LiveStep => {
  for (const count of Object.keys(none) as (keyof typeof none)[]) to[count] += step[count]
  to.late = Math.max(to.late, step.late ?? 0)
  return to
}
