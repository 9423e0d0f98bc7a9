// The reasons against a comparison: other traffic, another pace or length, another machine, figures of a saturated generator. Versions and
// settings may differ, because they are what is compared.

import type { ReplayResult } from './result.ts'

type Obstacle =
  | 'traffic'
  | 'kind'
  | 'pace'
  | 'length'
  | 'connections'
  | 'machine'
  | 'saturated'
  | 'interrupted'
  | 'disturbed'
  | 'late'

/** An obstacle, and what each side has there. */
export type Warning = { readonly obstacle: Obstacle; readonly a: string; readonly b: string }

/** The warnings as sentences. */
export const warningSentences = (warnings: readonly Warning[]): string[] =>
  warnings.map(({ obstacle, a, b }) => sentences[obstacle](a, b))

const sentences: Readonly<Record<Obstacle, (a: string, b: string) => string>> = {
  traffic: (a, b) => `The traffic differs: A has hash ${a}, B has ${b}.`,
  kind: (a, b) => `The kinds of run differ: A is ${a}, B is ${b}.`,
  pace: (a, b) => `The pace differs: A is ${a}, B is ${b}.`,
  length: (a, b) => `The lengths differ: A lasted ${a}, B lasted ${b}.`,
  connections: (a, b) => `Connections, workers or HTTP differ: A has ${a}, B has ${b}.`,
  machine: (a, b) => `The machines differ: A has ${a}, B has ${b}.`,
  saturated: (a, b) => `The load generator was saturated, so figures are its own: runs of A ${a}, of B ${b}.`,
  interrupted: (a, b) => `Runs were stopped before their end: of A ${a}, of B ${b}.`,
  disturbed: (a, b) =>
    `The load generator stood still for 10 ms and more, because of other work on its machine: runs of A ${a}, of B ${b}.`,
  late: (a, b) => `More than 1 % of the requests were late or dropped: runs of A ${a}, of B ${b}.`,
}

const facts: Readonly<Record<Exclude<Obstacle, State | 'length'>, (run: ReplayResult) => string>> = {
  traffic: ({ traffic }) => traffic.sha256.slice(0, 12),
  kind: ({ kind }) => kind,
  // A moved clock goes as fast as it can.
  pace: ({ kind, pace: { mode, speed, rate } }) =>
    kind === 'rehearsal'
      ? 'moved clock'
      : mode === 'recorded'
        ? `recorded × ${speed ?? 1}`
        : mode === 'rate'
          ? `${rate}/s`
          : 'closed',
  connections: ({ pace: { connections, workers, http } }) => `${connections}, ${workers}, HTTP/${http}`,
  machine: ({ machine: { cpu, cores } }) => `${cores} × ${cpu}`,
}

type State = 'saturated' | 'interrupted' | 'disturbed' | 'late'

// Of a turn of the generator's event loop, in ms: as much as makes a request late.
const stoodStillMs = 10

const states: Readonly<Record<State, (run: ReplayResult) => boolean>> = {
  saturated: ({ generator }) => generator.saturated,
  interrupted: ({ interrupted }) => interrupted,
  // In a rehearsal nothing goes on while the generator stands still.
  disturbed: ({ kind, generator }) =>
    kind === 'replay' && !generator.saturated && generator.loopDelayP99 > stoodStillMs,
  late: ({ totals: { late, dropped, due } }) => late + dropped > due / 100,
}

/** Whether what a run measured is its generator's doing, or of a part of the traffic: no difference to it is of the target. */
export const isDisturbed = (run: ReplayResult): boolean =>
  states.saturated(run) || states.interrupted(run) || states.disturbed(run)

// A closed loop may send more in the same time, or the same in less.
const differInLength = (runs: readonly ReplayResult[]): boolean =>
  (['due', 'seconds'] as const).every(figure => {
    const figures = runs.map(({ totals }) => totals[figure])
    return Math.max(...figures) > 1.05 * Math.min(...figures)
  })
const lengthText = ({ totals: { seconds } }: ReplayResult): string => `${Number(seconds.toPrecision(3))} s`

/** @param a one run or more; all of a side are looked at */
export const warningsOf = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Warning[] => {
  const all = (runs: readonly ReplayResult[], of: (run: ReplayResult) => string): string =>
    [...new Set(runs.map(of))].join('; ')
  const differing = Object.entries(facts).flatMap(([obstacle, of]) =>
    new Set([...a, ...b].map(of)).size === 1
      ? []
      : [{ obstacle: obstacle as Obstacle, a: all(a, of), b: all(b, of) }],
  )
  const lengths: Warning[] = differInLength([...a, ...b])
    ? [{ obstacle: 'length', a: all(a, lengthText), b: all(b, lengthText) }]
    : []
  const disturbed = Object.entries(states).flatMap(([obstacle, is]) => {
    const count = (runs: readonly ReplayResult[]): number => runs.filter(is).length
    return count(a) + count(b) === 0
      ? []
      : [{ obstacle: obstacle as Obstacle, a: `${count(a)}/${a.length}`, b: `${count(b)}/${b.length}` }]
  })
  return [...differing, ...lengths, ...disturbed]
}
