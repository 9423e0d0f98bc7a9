// The id of a request, which is echoed and logged: the consumer's own or a new one.

import { randomBytes } from 'node:crypto'
import { holdsKey } from '../key-redaction.ts'

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/

// A name of this process by chance and a running number: no two are equal, at the price of an addition.
const process = randomBytes(9).toString('base64url')
let made = 0

/** The consumer's own id when it is a sane one, else a new one. An id that holds an API key is not sane: it is echoed and logged. */
export const requestIdOf = (given: string | undefined): string => {
  if (given !== undefined && sane.test(given) && !holdsKey(given)) return given
  made += 1
  return `${process}-${made.toString(36)}`
}
