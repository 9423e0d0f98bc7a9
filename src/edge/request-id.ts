// The id of a request: the consumer's own when it is a sane one, so that both sides can find the same line in their
// logs, else a new one. An id that holds an API key is not sane: it is echoed and logged.

import { randomBytes } from 'node:crypto'
import { holdsKey } from '../key-redaction.ts'

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/

// A name of this process by chance and a running number: no two are equal, at the price of an addition.
const process = randomBytes(9).toString('base64url')
let given = 0

export const requestIdOf = (told: string | undefined): string => {
  if (told !== undefined && sane.test(told) && !holdsKey(told)) return told
  given += 1
  return `${process}-${given.toString(36)}`
}
