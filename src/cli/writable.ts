// Whether a file can be written, looked at before the work that it is for: an hour of it must not be lost to a folder that is
// missing.

import { access, constants, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { InputError, messageOf } from '../errors.ts'
import { quoted } from '../outside-text.ts'

// Its end says most of it.
const longestPath = 300

/** @throws InputError */
export const checkWritable = async (paths: readonly string[]): Promise<void> => {
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined)
    if (found?.isDirectory())
      throw new InputError(`${quoted(path, longestPath)} is a folder; allowed: a file`)
    const where = found ? path : dirname(path)
    const folder = found ? undefined : await stat(where).catch(() => undefined)
    if (!found && !folder?.isDirectory())
      throw new InputError(
        `${quoted(path, longestPath)} can't be written: ${quoted(where, longestPath)} is ${folder ? 'no folder' : 'a folder that is missing'}`,
      )
    await access(where, constants.W_OK).catch(cause => {
      throw new InputError(`${quoted(path, longestPath)} can't be written: ${messageOf(cause)}`, { cause })
    })
  }
}
