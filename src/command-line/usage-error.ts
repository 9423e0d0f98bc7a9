// The error of an invalid command line. Separate so that the exit code is known before a command is loaded.

import { InputError } from '../common/errors.ts'

/** An invalid command line: exit code 2. */
export class UsageError extends InputError {
  override name = 'UsageError'
}

/**
 * For what reads an argument: what is wrong with it is a usage error. Faults of the configuration itself stay what they are.
 * @throws UsageError
 */
export const asUsage = <Value>(read: () => Value): Value => {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof InputError && cause.name === 'InputError')
      throw new UsageError(cause.message.split('\n'), { cause })
    throw cause
  }
}
