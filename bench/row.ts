// What a row of the benchmark is: something started, measured against a bar, and let go of. The runner prints; a row
// only finds.

import type { Scope } from '../test/scenarios/set-up.ts'

/** One line of the table. `met` is null for a figure that no bar stands for. */
export type Finding = {
  readonly what: string
  readonly bar: string
  readonly measured: string
  readonly met: boolean | null
  /** The same in numbers. */
  readonly figures: Readonly<Record<string, number | string | readonly number[]>>
}

/** A line for what can't be measured on this machine. */
export const notMeasured = (what: string, why: string): Finding => ({
  what,
  bar: '—',
  measured: `not measured: ${why}`,
  met: null,
  figures: {},
})

export type Result = {
  readonly findings: readonly Finding[]
  /** Sentences below the table. */
  readonly notes?: readonly string[]
  /** All figures side by side, below the findings. */
  readonly table?: { readonly head: readonly string[]; readonly lines: readonly (readonly string[])[] }
  /** What ran besides Node and Redis, such as `nginx 1.22.1`. */
  readonly versions?: readonly string[]
  /** Drawings by the name of their file in docs/. */
  readonly drawings?: Readonly<Record<string, { readonly caption: string; readonly svg: string }>>
}

/** What was asked for on the command line. */
export type Wish = {
  readonly settings: Readonly<Record<string, number>>
  /** Of the parts of the row, those to run. */
  readonly parts: readonly string[]
}

export type Row = {
  readonly id: string
  /** What is measured in turn within the row, and can be chosen like a row. */
  readonly parts?: readonly string[]
  /** How it is measured, in a sentence or two. */
  readonly method: string
  run(scope: Scope, progress: (text: string) => void, wish: Wish): Promise<Result>
}

export const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

export const median = (values: readonly number[]): number =>
  sorted(values)[Math.floor(values.length / 2)] ?? Number.NaN

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

export const count = (value: number): string => Math.round(value).toLocaleString('en-GB')

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
