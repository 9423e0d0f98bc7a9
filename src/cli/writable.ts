// Whether a file can be written, looked at before the work that it is for: an hour of it must not be lost to a folder that is
// missing. And its writing, whose failure is one sentence.

import { access, constants, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { InputError, messageOf } from '../common/errors.ts'
import { quotedPath } from '../common/outside-text.ts'

/** @throws InputError */
export const checkWritable = async (paths: readonly string[]): Promise<void> => {
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined)
    if (found?.isDirectory()) throw new InputError(`${quotedPath(path)} is a folder; allowed: a file`)
    const where = found ? path : dirname(path)
    const folder = found ? undefined : await stat(where).catch(() => undefined)
    if (!found && !folder?.isDirectory())
      throw new InputError(
        `${quotedPath(path)} can't be written: ${quotedPath(where)} is ${folder ? 'no folder' : 'a folder that is missing'}`,
      )
    await access(where, constants.W_OK).catch(cause => {
      throw new InputError(`${quotedPath(path)} can't be written: ${messageOf(cause)}`, { cause })
    })
  }
}

/** Writes a report in place of what is there. @throws InputError */
export const writeOutput = async (path: string, text: string): Promise<void> => {
  await writeFile(path, text).catch((cause: unknown) => {
    throw new InputError(`${quotedPath(path)} can't be written: ${messageOf(cause)}`, { cause })
  })
}
