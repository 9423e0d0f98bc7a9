// Errors raised on purpose: a stable code and a sentence. Sentences may quote text from outside, so they are made printable, short and
// free of API keys here.

import { constants } from 'node:os'
import { safeText } from './outside-text.ts'

/** A failure with a stable `code`; `message` is a sentence that is fit to show to an operator, or several, one a line. */
export class AbohawaError extends Error {
  override name = 'AbohawaError'
  readonly code: string

  constructor(code: string, message: string | readonly string[], options?: ErrorOptions) {
    super(
      typeof message === 'string' ? safeText(message) : message.map(each => safeText(each)).join('\n'),
      options,
    )
    this.code = code
  }
}

/** Bad input on the command line, in a config file or in a data file: shown as it is, without a stack. */
export class InputError extends AbohawaError {
  override name = 'InputError'

  constructor(message: string | readonly string[], options?: ErrorOptions, code = 'bad_input') {
    super(code, message, options)
  }
}

/** Bad input that names something which is not there. */
export class NotFoundError extends InputError {
  override name = 'NotFoundError'

  constructor(message: string) {
    super(message, undefined, 'not_found')
  }
}

/** The sentence inside whatever was thrown, fit to show like those of an AbohawaError. */
export const messageOf = (thrown: unknown): string => {
  if (thrown instanceof AbohawaError) return thrown.message
  return safeText(thrown instanceof Error ? withSystemNames(thrown.message) : String(thrown))
}

const { EDQUOT, ESTALE, ENOLCK } = constants.errno
const systemWords = new Map([
  [EDQUOT, 'disk quota exceeded'],
  [ESTALE, 'stale file handle'],
  [ENOLCK, 'no locks available'],
])

/** Node names no error that libuv does not know, such as those of quotas and of network disks: `Unknown system error -122`. */
const withSystemNames = (message: string): string =>
  message.replace(/Unknown system error -(\d+)(?:: Unknown system error -\1)?/g, (whole, digits: string) => {
    const number = Number(digits)
    const name = Object.entries(constants.errno).find(([, value]) => value === number)?.[0]
    return name === undefined ? whole : `${name}: ${systemWords.get(number) ?? `system error ${number}`}`
  })

/** The code of an AbohawaError; `internal` for whatever else was thrown. */
export const codeOf = (thrown: unknown): string => (thrown instanceof AbohawaError ? thrown.code : 'internal')
