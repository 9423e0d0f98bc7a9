// The steps of a run as charts show them: so few that each is seen, with their place on an axis of time. A run on a moved
// clock goes by times of day, another one by the time since its begin.

import { createCalendar } from '../../calendar.ts'
import type { Figures } from './page-frame.ts'
import type { ReplayResult, Step } from './result.ts'
import { type Scale, timeScale } from './scale.ts'

export type ShownSteps = {
  readonly steps: readonly Step[]
  readonly seconds: number
}

/** Joins neighbours until there are at most so many steps. Of percentiles the worst is kept, of medians the mean by count. */
export const shownSteps = ({ steps, stepSeconds }: ReplayResult, most: number): ShownSteps => {
  const each = Math.max(1, Math.ceil(steps.length / most))
  if (each === 1) return { steps, seconds: stepSeconds }
  const joined = Array.from({ length: Math.ceil(steps.length / each) }, (_, i) =>
    joinedStep(steps.slice(i * each, (i + 1) * each)),
  )
  return { steps: joined, seconds: stepSeconds * each }
}

const joinedStep = (steps: readonly Step[]): Step => {
  const sum = (name: 'due' | 'sent' | 'answered' | 'failed' | 'hits' | 'stale' | 'misses'): number =>
    steps.reduce((total, step) => total + step[name], 0)
  const known = (name: 'p50' | 'p99' | 'late' | 'age50' | 'ageMax' | 'weight') =>
    steps.flatMap(step => {
      const count = name === 'age50' ? step.hits + step.stale + step.misses : step.due
      return step[name] === null ? [] : [{ value: step[name], count }]
    })
  const largest = (name: 'p99' | 'late' | 'ageMax'): number | null =>
    known(name).reduce<number | null>((most, { value }) => Math.max(most ?? 0, value), null)
  const mean = (name: 'p50' | 'age50'): number | null => {
    const values = known(name)
    const count = values.reduce((total, each) => total + each.count, 0)
    return count === 0 ? null : values.reduce((total, each) => total + each.value * each.count, 0) / count
  }
  const weights = known('weight')
  return {
    at: steps[0]?.at ?? 0,
    due: sum('due'),
    sent: sum('sent'),
    answered: sum('answered'),
    failed: sum('failed'),
    hits: sum('hits'),
    stale: sum('stale'),
    misses: sum('misses'),
    p50: mean('p50'),
    p99: largest('p99'),
    late: largest('late'),
    age50: mean('age50'),
    ageMax: largest('ageMax'),
    weight: weights.length === 0 ? null : weights.reduce((total, { value }) => total + value, 0),
  }
}

export type TimeAxis = {
  readonly values: readonly number[]
  readonly scale: Scale
  readonly write: (value: number) => string
}

const daySeconds = 86_400

/** Where the steps of a run lie in time. */
export const timeAxis = (run: ReplayResult, { steps, seconds }: ShownSteps, figures: Figures): TimeAxis => {
  const values = steps.map(({ at }) => at)
  const to = Math.max(values.at(-1) ?? 0, seconds)
  const from =
    run.kind === 'rehearsal' && run.traffic.from !== null ? Date.parse(run.traffic.from) : undefined
  if (from === undefined) {
    const write = (at: number): string => elapsed(at, figures)
    return { values, scale: timeScale({ from: 0, to }, write), write }
  }
  const calendar = createCalendar(figures.timeZone)
  const offset = (from / 1000 + calendar.offsetSecondsAt(from)) % daySeconds
  const isLong = to > 1.5 * daySeconds
  const write = (at: number): string => {
    const instant = from + at * 1000
    const time = figures.timeOfDay(instant)
    return isLong ? `${figures.day(calendar.dayOf(instant))} ${time}` : time
  }
  return { values, scale: timeScale({ from: 0, to, offset }, write), write }
}

/** Minutes and seconds since the begin, with hours where there are any. */
const elapsed = (seconds: number, figures: Figures): string => {
  const two = (value: number): string => figures.plain(value).padStart(2, figures.plain(0))
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const end = `${two(minutes)}:${two(Math.floor(seconds % 60))}`
  return hours === 0 ? end : `${figures.plain(hours)}:${end}`
}
