// Reasons against a comparison: different traffic, pace, length or machine, or a saturated generator. Versions and settings may differ,
// because they are what is compared.

import type { ReplayResult } from './result.ts'
import { sentFor } from './run-figures.ts'

// Event-loop delay of the generator in ms, from which on a request is late.
const stoodStillMs = 10

/** Facts that must be equal in all runs. */
const facts = {
  traffic: ({ traffic }: ReplayResult) => traffic.sha256.slice(0, 12),
  kind: ({ kind }: ReplayResult) => kind,
  pace: ({ kind, pace: { mode, speed, rate } }: ReplayResult) =>
    kind === 'rehearsal'
      ? 'moved clock'
      : { recorded: `recorded × ${speed ?? 1}`, rate: `${rate}/s`, closed: 'closed' }[mode],
  connections: ({ pace: { connections, workers, http } }: ReplayResult) =>
    `${connections}, ${workers}, HTTP/${http}`,
  machine: ({ machine: { cpu, cores } }: ReplayResult) => `${cores} × ${cpu}`,
}

/** States that a run must not have. */
const states = {
  saturated: ({ generator }: ReplayResult) => generator.saturated,
  interrupted: ({ interrupted }: ReplayResult) => interrupted,
  // In a rehearsal the clock stands still with the generator.
  disturbed: ({ kind, generator }: ReplayResult) =>
    kind === 'replay' && !generator.saturated && generator.loopDelayP99 > stoodStillMs,
  late: ({ totals: { late, dropped, due } }: ReplayResult) => late + dropped > due / 100,
}

type Obstacle = keyof typeof facts | keyof typeof states | 'length'

export type Warning = { readonly obstacle: Obstacle; readonly a: string; readonly b: string }

export const warningSentences = (warnings: readonly Warning[]): string[] =>
  warnings.map(({ obstacle, a, b }) => sentences[obstacle](a, b))

const sentences: Readonly<Record<Obstacle, (a: string, b: string) => string>> = {
  traffic: (a, b) => `The traffic differs: A has hash ${a}, B has ${b}.`,
  kind: (a, b) => `The kinds of run differ: A is ${a}, B is ${b}.`,
  pace: (a, b) => `The pace differs: A is ${a}, B is ${b}.`,
  length: (a, b) => `The lengths differ: A lasted ${a}, B lasted ${b}.`,
  connections: (a, b) => `Connections, workers or HTTP differ: A has ${a}, B has ${b}.`,
  machine: (a, b) => `The machines differ: A has ${a}, B has ${b}.`,
  saturated: (a, b) =>
    `The load generator was saturated, so the figures are not the target's: runs of A ${a}, of B ${b}.`,
  interrupted: (a, b) => `Runs were stopped before their end: of A ${a}, of B ${b}.`,
  disturbed: (a, b) =>
    `The load generator was delayed by 10 ms or more by other work on its machine: runs of A ${a}, of B ${b}.`,
  late: (a, b) => `More than 1 % of the requests were late or dropped: runs of A ${a}, of B ${b}.`,
}

/** Whether the figures of a run depend on its generator, or on a part of the traffic. */
export const isDisturbed = (run: ReplayResult): boolean =>
  states.saturated(run) || states.interrupted(run) || states.disturbed(run)

// A closed loop may send more in the same time, or the same in less.
const differInLength = (runs: readonly ReplayResult[]): boolean =>
  [({ due }: ReplayResult['totals']) => due, sentFor].every(of => {
    const figures = runs.map(({ totals }) => of(totals))
    return Math.max(...figures) > 1.05 * Math.min(...figures)
  })
const lengthText = ({ totals }: ReplayResult): string => `${Number(sentFor(totals).toPrecision(3))} s`

/** @param a at least one run */
export const warningsOf = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Warning[] => {
  const both = [...a, ...b]
  const all = (obstacle: Obstacle, of: (run: ReplayResult) => string): Warning => {
    const [ofA, ofB] = [a, b].map(runs => [...new Set(runs.map(of))].join('; '))
    return { obstacle, a: ofA ?? '', b: ofB ?? '' }
  }
  const share = (runs: readonly ReplayResult[], is: (run: ReplayResult) => boolean): string =>
    `${runs.filter(is).length}/${runs.length}`
  return [
    ...Object.entries(facts)
      .filter(([, of]) => new Set(both.map(of)).size > 1)
      .map(([obstacle, of]) => all(obstacle as Obstacle, of)),
    ...(differInLength(both) ? [all('length', lengthText)] : []),
    ...Object.entries(states)
      .filter(([, is]) => both.some(is))
      .map(([obstacle, is]) => ({ obstacle: obstacle as Obstacle, a: share(a, is), b: share(b, is) })),
  ]
}
