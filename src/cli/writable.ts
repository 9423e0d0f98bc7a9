// The files that commands write. Whether one can be written is looked at before the work that it is for: an hour of it must not be
// lost to a folder that is missing. A private file is written in one step, readable by its owner alone: to a temporary file
// beside it, with a random name and O_EXCL, so that nobody can have prepared it; then a rename replaces the target.

import { randomBytes } from 'node:crypto'
import {
  access,
  constants,
  type FileHandle,
  lstat,
  open,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
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

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** A new file of its owner alone; nothing may stand in its place. */
export const openNewFile = (path: string): Promise<FileHandle> =>
  open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)

/**
 * Writes a private file in place of what is there, and resolves when it is on disk under its name.
 * @param said which file, as the beginning of a sentence
 * @param fill writes and syncs the file beside it, and may close its handle
 * @throws InputError when the system refuses it
 */
export const writePrivateFile = async <Filled>(
  path: string,
  said: string,
  fill: (beside: string, handle: FileHandle) => Promise<Filled>,
): Promise<Filled> => {
  try {
    if (!(await isFileOrFree(path))) throw new InputError(`${said}, which is not a regular file`)
    const beside = `${path}.${randomBytes(6).toString('hex')}.part`
    const handle = await openNewFile(beside)
    let filled: Filled
    try {
      filled = await fill(beside, handle)
      await rename(beside, path)
    } catch (cause) {
      await rm(beside, { force: true })
      throw cause
    }
    // Sync the directory too, so that the rename survives a power cut.
    const directory = await open(dirname(path), 'r')
    await directory.sync().finally(() => directory.close())
    return filled
  } catch (cause) {
    if (cause instanceof Error && 'syscall' in cause)
      throw new InputError(`${said}, which can't be written: ${messageOf(cause)}`, { cause })
    throw cause
  }
}

/** It may be replaced: nothing is there, or a file or a link. */
const isFileOrFree = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined
    throw thrown
  })
  return found === undefined || found.isFile() || found.isSymbolicLink()
}
