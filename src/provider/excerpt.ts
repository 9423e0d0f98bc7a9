// A value that the provider sent, as it may stand in a sentence of ours. What makes text fit for one is outside-text.ts's.

import { safeText } from '../outside-text.ts'

const mostCharacters = 80

/** A text as it is, any other value as JSON; both made printable and cut. */
export const excerptOf = (value: unknown, most = mostCharacters): string =>
  safeText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing'), most)
