// A row of a benchmark: starts something, measures it against a bar, and ends it. Rows return their findings; run-rows.ts
// prints them.

import type { Scope } from '../test/scenarios/set-up.ts'

/** One line of the table. `met` is null for a figure without a bar. */
export type Finding = {
  readonly what: string
  readonly bar: string
  readonly measured: string
  readonly met: boolean | null
  /** The same figures as numbers. */
  readonly figures: Readonly<Record<string, number | string | readonly number[]>>
}

/** A line for something that cannot be measured on this machine. */
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
  /** Other software that took part, such as `nginx 1.22.1`. */
  readonly versions?: readonly string[]
  /** Drawings by their file name in docs/. */
  readonly drawings?: Readonly<Record<string, { readonly caption: string; readonly svg: string }>>
}

/** The options of the command line. */
export type Wish = {
  readonly settings: Readonly<Record<string, number>>
  /** The chosen parts of the row. */
  readonly parts: readonly string[]
}

export type Row = {
  readonly id: string
  /** The parts that the row measures in turn, which can be chosen like a row. */
  readonly parts?: readonly string[]
  /** The method, in a sentence or two. */
  readonly method: string
  run(scope: Scope, progress: (text: string) => void, wish: Wish): Promise<Result>
}

export const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

export const median = (values: readonly number[]): number =>
  sorted(values)[Math.floor(values.length / 2)] ?? Number.NaN

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

export const count = (value: number): string => Math.round(value).toLocaleString('en-GB')

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
