// Holds the figures of rounds against bars: one contender beside another, by answers a second, processor time or p99, each by
// its best round.

import { count, type Finding } from '../row.ts'
import { best, leastOf, type Measured } from './rounds.ts'

export type Judge = ReturnType<typeof judgeOf>

const ratio = (one: number, other: number): string => (one / other).toFixed(2)

const allowing = (allowed: number): string => (allowed > 0 ? ' (a gap under 10 % is none)' : '')

/** Each gives no finding where one of the two was not measured. */
export const judgeOf = (measured: readonly Measured[]) => {
  const of = (id: string): Measured | undefined =>
    measured.find(({ contender, samples }) => contender.id === id && samples.length > 0)
  const both = (
    id: string,
    other: string,
    finding: (one: Measured, base: Measured) => Finding,
  ): Finding[] => {
    const [one, base] = [of(id), of(other)]
    return one && base ? [finding(one, base)] : []
  }

  /** At least so many times the answers a second of another. */
  const byRate = (id: string, other: string, bar: number, what: string, allowed = 0): Finding[] =>
    both(id, other, (one, base) => {
      const share = best(one) / best(base)
      const cpuShare = leastOf(base, 'cpuMicros') / leastOf(one, 'cpuMicros')
      return {
        what,
        bar: `≥ ${bar.toFixed(2)} ×${allowing(allowed)}`,
        measured: `${share.toFixed(2)} × (${count(best(one))} of ${count(best(base))} a second; by CPU ${cpuShare.toFixed(2)} ×)`,
        met: share >= bar - allowed,
        figures: { share, cpuShare },
      }
    })

  /** At least so many times the answers in the processor time of another. */
  const byCpu = (id: string, other: string, bar: number, what: string): Finding[] =>
    both(id, other, (one, base) => {
      const [micros, basis] = [leastOf(one, 'cpuMicros'), leastOf(base, 'cpuMicros')]
      return {
        what,
        bar: `≥ ${bar.toFixed(2)} ×`,
        measured: `${ratio(basis, micros)} × (${micros.toFixed(1)} of ${basis.toFixed(1)} µs)`,
        met: basis >= micros * bar,
        figures: { micros, basis },
      }
    })

  /** At most so many times the processor time of another. */
  const byCost = (id: string, other: string, times: number, what: string): Finding[] =>
    both(id, other, (one, base) => {
      const [micros, basis] = [leastOf(one, 'cpuMicros'), leastOf(base, 'cpuMicros')]
      return {
        what,
        bar: `≤ ${times.toFixed(2)} ×`,
        measured: `${ratio(micros, basis)} × (${micros.toFixed(1)} of ${basis.toFixed(1)} µs)`,
        met: micros <= basis * times,
        figures: { micros, basis },
      }
    })

  /** At most so many times the p99 of another. */
  const byP99 = (id: string, other: string, times: number, what: string, allowed = 0): Finding[] =>
    both(id, other, (one, base) => {
      const [p99, basis] = [leastOf(one, 'p99'), leastOf(base, 'p99')]
      return {
        what,
        bar: `≤ ${times} ×${allowing(allowed)}`,
        measured: `${ratio(p99, basis)} × (${p99.toFixed(1)} of ${basis.toFixed(1)} ms)`,
        met: p99 <= basis * (times + allowed),
        figures: { p99, basis },
      }
    })
  return { of, byRate, byCpu, byCost, byP99 }
}

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
