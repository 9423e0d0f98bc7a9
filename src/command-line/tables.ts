// Tables and facts with aligned columns. Separate because the library that measures text is slow to load.

import stringWidth from 'string-width'
import { printable } from '../common/outside-text.ts'

/** Names and values, one pair a line, indented; escaped as in `tableOf`. Those without a value are left out. */
export const factsText = (facts: readonly (readonly [string, string | undefined])[]): string => {
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return indented(tableOf(['', ''], known).replace(/^.*\n/, ''))
}

export const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

const longestValue = 500

/**
 * A table with columns that are aligned in cells of a terminal. Control characters of the values are escaped, so that
 * each row stays one line.
 * @param numbers the columns to align right
 */
export const tableOf = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: readonly number[] = [],
): string => {
  const lines = [headings, ...rows].map(row =>
    row.map(value => {
      const text = printable(value, longestValue)
      return { text, width: stringWidth(text) }
    }),
  )
  const widths = headings.map((_, i) => lines.reduce((most, row) => Math.max(most, row[i]?.width ?? 0), 0))
  return lines
    .map(row =>
      row
        .map(({ text, width }, i) => {
          const blanks = ' '.repeat((widths[i] ?? width) - width)
          return numbers.includes(i) ? blanks + text : text + blanks
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
