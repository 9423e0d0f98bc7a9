// Reads a data file as UTF-8 text. An unreadable file is an InputError that names it.

import { InputError, messageOf } from '../errors.ts'
import { FileError, maxFileBytes, readTextFile } from '../regular-file.ts'

/** The text of a file, without a byte order mark; InputError when it cannot be read or is not UTF-8. */
export const readText = async (path: string): Promise<string> => {
  try {
    return await readTextFile(path, maxFileBytes.data)
  } catch (thrown) {
    if (thrown instanceof FileError && thrown.code === 'EILSEQ')
      throw new InputError(`${path} is not valid; allowed: text in UTF-8`, { cause: thrown })
    throw new InputError(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown })
  }
}

/** As `readText`, and undefined when there is no such file. */
export const readTextIfPresent = (path: string): Promise<string | undefined> =>
  readText(path).catch((thrown: unknown) => {
    const cause = thrown instanceof InputError ? thrown.cause : undefined
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw thrown
  })
