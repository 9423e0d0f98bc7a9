// The one family of errors a part may raise on purpose: a stable code, a plain sentence, the facts behind it.
// What a code means for a consumer (status, wording) or for a shell (exit code) is decided at the edges.

import { redactedUrls } from './redacted-url.ts'

/** A failure with a stable `code`; `message` is one sentence that is fit to show to an operator, URLs in it too. */
export class AbohawaError extends Error {
  override name = 'AbohawaError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(redactedUrls(message), options)
    this.code = code
  }
}

/** Bad input on the command line, in a config file or in a data file: shown as it is, without a stack. */
export class InputError extends AbohawaError {
  override name = 'InputError'

  constructor(message: string, options?: ErrorOptions) {
    super('bad_input', message, options)
  }
}

/** The sentence inside whatever was thrown, without what is secret in a URL that a library quotes. */
export const messageOf = (thrown: unknown): string =>
  redactedUrls(thrown instanceof Error ? thrown.message : String(thrown))
