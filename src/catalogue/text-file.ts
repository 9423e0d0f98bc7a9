// A data file as text. What cannot be read, or is not UTF-8, is bad input and named as such; what the text means is
// for others.

import { readFile } from 'node:fs/promises'
import { InputError, messageOf } from '../errors.ts'

/** The text of a file, without a byte order mark; InputError when it cannot be read or is not UTF-8. */
export const readText = async (path: string): Promise<string> => {
  const bytes = await readFile(path).catch((thrown: unknown) => {
    throw new InputError(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown })
  })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (thrown) {
    throw new InputError(`${path} is not text in UTF-8, which is what it must be`, { cause: thrown })
  }
}

/** As `readText`, and undefined when there is no such file. */
export const readTextIfPresent = (path: string): Promise<string | undefined> =>
  readText(path).catch((thrown: unknown) => {
    const cause = thrown instanceof InputError ? thrown.cause : undefined
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw thrown
  })
