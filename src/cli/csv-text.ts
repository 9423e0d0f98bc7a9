// Lines of CSV by RFC 4180, for the outputs of commands.

import { printable } from '../outside-text.ts'

/** A line of values; those with a comma or a quotation mark are quoted, and what is not printable is
 * escaped. Null is empty. */
export const csvLine = (values: readonly (string | number | boolean | null)[]): string =>
  `${values.map(fieldOf).join(',')}\r\n`

const fieldOf = (value: string | number | boolean | null): string => {
  const text = printable(String(value ?? ''))
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
