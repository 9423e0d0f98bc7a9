// Holds the figures of rounds against bars: one contender beside another, by processor time, answers a second or p99. Each round
// gives a pair, so that a disturbance of a minute counts for both; the median of the pairs' ratios is the result.

import { count, type Finding, median } from '../row.ts'
import { isDisturbed, type Measured, maxOthers, medianOf, type Sample } from './rounds.ts'

export type Judge = ReturnType<typeof judgeOf>

/** Each gives no finding where one of the two was not measured. */
export const judgeOf = (measured: readonly Measured[]) => {
  const of = (id: string): Measured | undefined =>
    measured.find(({ contender, samples }) => contender.id === id && samples.length > 0)

  /** The median ratio of one to the other, held against a bar. */
  const compare = (
    [id, otherId]: readonly [string, string],
    value: (sample: Sample) => number,
    what: string,
    {
      bar,
      isMet,
      text,
    }: { bar: string; isMet(ratio: number): boolean; text(one: Measured, other: Measured): string },
  ): Finding[] => {
    const [one, other] = [of(id), of(otherId)]
    if (!one || !other) return []
    const ratios = one.samples.flatMap((sample, i) => {
      const base = other.samples[i]
      return base ? [value(sample) / value(base)] : []
    })
    const ratio = median(ratios)
    return [
      {
        what,
        bar,
        measured: `${ratio.toFixed(2)} × (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}; ${text(one, other)})`,
        met: isMet(ratio),
        figures: { ratio, ratios },
      },
    ]
  }
  const inMicros =
    (value: (sample: Sample) => number) =>
    (one: Measured, other: Measured): string =>
      `${median(one.samples.map(value)).toFixed(1)} of ${median(other.samples.map(value)).toFixed(1)} µs`

  /** At least so many times the answers a second of another. */
  const byRate = (id: string, other: string, bar: number, what: string, allowed = 0): Finding[] =>
    compare([id, other], ({ perSecond }) => perSecond, what, {
      bar: `≥ ${bar.toFixed(2)} ×${allowing(allowed)}`,
      isMet: ratio => ratio >= bar - allowed,
      text: (one, base) =>
        `${count(medianOf(one, 'perSecond'))} of ${count(medianOf(base, 'perSecond'))} a second`,
    })

  /** At least so many times the answers in the processor time of another. */
  const byCpu = (id: string, other: string, bar: number, what: string): Finding[] =>
    compare([id, other], ({ cpuMicros }) => 1 / cpuMicros, what, {
      bar: `≥ ${bar.toFixed(2)} ×`,
      isMet: ratio => ratio >= bar,
      text: inMicros(({ cpuMicros }) => cpuMicros),
    })

  /** At most so many times the processor time of another. */
  const byCost = (id: string, other: string, times: number, what: string): Finding[] =>
    compare([id, other], ({ cpuMicros }) => cpuMicros, what, {
      bar: `≤ ${times.toFixed(2)} ×`,
      isMet: ratio => ratio <= times,
      text: inMicros(({ cpuMicros }) => cpuMicros),
    })

  /** So many times the processor time of another, which README and pages name. */
  const inCost = (id: string, other: string, what: string): Finding[] =>
    byCost(id, other, Number.POSITIVE_INFINITY, what).map(one => ({ ...one, bar: '—', met: null }))

  /** At most so many times the processor time of another, each with that of Redis. */
  const byCostWithRedis = (id: string, other: string, times: number, what: string): Finding[] =>
    compare([id, other], withRedis, what, {
      bar: `≤ ${times.toFixed(2)} ×`,
      isMet: ratio => ratio <= times,
      text: inMicros(withRedis),
    })

  /** At most so many times the p99 of another. */
  const byP99 = (id: string, other: string, times: number, what: string, allowed = 0): Finding[] =>
    compare([id, other], ({ p99 }) => p99, what, {
      bar: `≤ ${times} ×${allowing(allowed)}`,
      isMet: ratio => ratio <= times + allowed,
      text: (one, base) => `${medianOf(one, 'p99').toFixed(1)} of ${medianOf(base, 'p99').toFixed(1)} ms`,
    })
  return { of, byRate, byCpu, byCost, inCost, byCostWithRedis, byP99 }
}

const withRedis = ({ cpuMicros, redisMicros }: Sample): number => cpuMicros + redisMicros

const allowing = (allowed: number): string => (allowed > 0 ? ' (a gap under 10 % is none)' : '')

/** Whether all answers of all contenders were right and counted. */
export const checked = (measured: readonly Measured[]): Finding => {
  const faults = measured.flatMap(one => one.faults.map(fault => `${one.contender.id}: ${fault}`))
  const answers = measured.reduce((total, one) => total + one.answers, 0)
  return {
    what: 'every answer right and counted',
    bar: 'no fault',
    measured:
      faults.length === 0
        ? `${count(answers)} answers without a fault`
        : `${faults.length} faults, such as ${[...new Set(faults)].slice(0, 3).join('; ')}`,
    met: faults.length === 0,
    figures: { answers, faults: faults.length },
  }
}

/** How often other work disturbed the runs, as a sentence. */
export const quietness = (measured: readonly Measured[]): string => {
  const samples = measured.flatMap(one => one.samples)
  const repeated = measured.reduce((total, one) => total + one.repeated, 0)
  const disturbed = samples.filter(isDisturbed).length
  const shares = samples.map(({ others }) => others).toSorted((a, b) => a - b)
  const percent = (share = Number.NaN): string => `${(share * 100).toFixed(0)} %`
  return (
    `Other work took ${percent(median(shares))} of the server’s core in the median run and ${percent(shares.at(-1))} at most. ` +
    `A run in which it took more than ${percent(maxOthers)} was repeated: ${repeated} of ${samples.length + repeated} runs; ` +
    `the quieter one stands, and ${disturbed} of those were disturbed too.`
  )
}
