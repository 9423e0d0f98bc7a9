// A row of the benchmark: what it measures, in its own scope, and the form of what it found.

import type { Teardown } from '../test/support/teardown.ts'

/** One line of a table. `met` is null for a figure without a bar. */
export type Finding = {
  readonly what: string
  readonly bar: string
  readonly measured: string
  readonly met: boolean | null
  /** The same figures as numbers, for `--json`. */
  readonly figures?: object | undefined
}

export type Table = { readonly head: readonly string[]; readonly lines: readonly (readonly string[])[] }

export type Result = {
  readonly findings: readonly Finding[]
  readonly table?: Table
  /** Sentences below the tables. */
  readonly notes?: readonly string[]
}

export type Options = {
  readonly rounds: number
  readonly seconds: number
  readonly pairs: number
  /** Undefined for what is usual in the row. */
  readonly minutes: number | undefined
  readonly keys: number
}

export type Progress = (text: string) => void

export type Row = {
  readonly id: string
  /** In a few words, for `--help`. */
  readonly what: string
  /** It takes so long that it runs only where it is named. */
  readonly isLong?: boolean
  run(scope: Teardown, options: Options, progress: Progress): Promise<Result>
}

/** A finding that a bar decides. */
export const judged = (
  what: string,
  bar: string,
  met: boolean,
  measured: string,
  figures?: object,
): Finding => ({ what, bar, measured, met, figures })

/** A finding without a bar. */
export const found = (what: string, measured: string, figures?: object): Finding => ({
  what,
  bar: '—',
  measured,
  met: null,
  figures,
})

export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

export const count = (value: number): string => Math.round(value).toLocaleString('en-GB')

/** The median, then the smallest and the largest. */
export const rangeOf = (values: readonly number[], digits: number): string =>
  `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`

export const tableText = ({ head, lines }: Table): string =>
  [
    `| ${head.join(' | ')} |`,
    `|${'---|'.repeat(head.length)}`,
    ...lines.map(cells => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n')

export const findingsText = (findings: readonly Finding[]): string =>
  tableText({
    head: ['what', 'bar', 'measured', 'met?'],
    lines: findings.map(({ what, bar, measured, met }) => [
      what,
      bar,
      measured,
      met === null ? '—' : met ? 'yes' : '**no**',
    ]),
  })
