// The id of a request, which is echoed and logged: the consumer's own or a new one.

import { randomUUID } from 'node:crypto'
import { holdsKey } from '../common/key-redaction.ts'

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/

/** The consumer's own id when it is a sane one, else a new one. An id that holds an API key is not sane: it is echoed and logged. */
export const requestIdOf = (given: string | undefined): string => {
  if (given !== undefined && sane.test(given) && !holdsKey(given)) return given
  return randomUUID()
}
