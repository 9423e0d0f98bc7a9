// Writes a file atomically, readable by its owner alone. It goes to a temporary file beside it, with a random name and
// O_EXCL, so that nobody can have prepared it; then a rename replaces the target.

import { randomBytes } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { type FileHandle, lstat, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { InputError, messageOf } from '../common/errors.ts'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** Whether a file may be written to the path: it is free, or a file or a link, which is replaced. */
export const isFileOrFree = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined
    throw thrown
  })
  return found === undefined || found.isFile() || found.isSymbolicLink()
}

/** Resolves when the file is on disk under its name. Errors about the file have a `syscall`. */
export const writePrivateFile = (path: string, text: AsyncIterable<string>): Promise<void> =>
  fillPrivateFile(path, (beside, handle) =>
    pipeline(text, createWriteStream(beside, { fd: handle, flush: true })),
  )

/** The same for what `fill` writes. It closes the handle; what it resolves to is on disk. */
export const fillPrivateFile = async <Filled>(
  path: string,
  fill: (beside: string, handle: FileHandle) => Promise<Filled>,
): Promise<Filled> => {
  const beside = `${path}.${randomBytes(6).toString('hex')}.part`
  const handle = await open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
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
}

/** Writes a file. @param said which, as the beginning of a sentence @throws InputError when the system refuses it */
export const writing = async <Written>(said: string, write: () => Promise<Written>): Promise<Written> => {
  try {
    return await write()
  } catch (cause) {
    if (cause instanceof Error && 'syscall' in cause)
      throw new InputError(`${said}, which can't be written: ${messageOf(cause)}`, { cause })
    throw cause
  }
}
