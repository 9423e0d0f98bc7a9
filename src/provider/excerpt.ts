// Formats a value that the provider sent for an error message: printable and cut. outside-text.ts does the escaping.

import { safeText } from '../outside-text.ts'

const maxCharacters = 80

/** A text as it is, any other value as JSON; both made printable and cut. */
export const excerptOf = (value: unknown, most = maxCharacters): string =>
  safeText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing'), most)
