// The id of a request: the consumer's own when it is a sane one, so that both sides can find the same line in their
// logs, else a new one.

import { randomUUID } from 'node:crypto'

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/

export const requestIdOf = (given: string | string[] | undefined): string =>
  typeof given === 'string' && sane.test(given) ? given : randomUUID()
