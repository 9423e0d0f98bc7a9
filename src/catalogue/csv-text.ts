// A value as a CSV field (RFC 4180) and back. An apostrophe before = + - @ keeps spreadsheets from reading a formula; unprintable
// characters are escaped.

import { escapedJson } from '../common/outside-text.ts'

type Value = string | number | boolean | null | undefined

/** A line; numbers stay numbers, negative ones too, and null is empty. */
export const csvLine = (values: readonly Value[]): string => `${values.map(cellOf).join(',')}\r\n`

// Text that begins with apostrophes gets one more, to tell them from ours.
const formula = /^'*[=+\-@\t\r]/
const guarded = /^'+[=+\-@\t\r]/
const escaped = /\\u([\da-f]{4})/g
const likeEscape = /\\(?=u[\da-f]{4})/g

const cellOf = (value: Value): string => {
  if (typeof value !== 'string') return String(value ?? '')
  const text = escapedJson(value.replaceAll(likeEscape, '\\u005c'))
  const cell = formula.test(text) ? `'${text}` : text
  return /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}

/** The text of a cell, without the quotation marks of CSV. */
export const textOfCell = (cell: string): string =>
  (guarded.test(cell) ? cell.slice(1) : cell).replaceAll(escaped, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
