// Edits a file exclusively and atomically. The new text goes to a file beside it that only one process can create: it is the
// lock and, once synced to disk, the replacement. Readers see the old file or the new one.

import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { InputError, messageOf } from 'abohawa/common/errors.ts'

/**
 * Replaces the file with the text that `next` returns, under the lock; undefined leaves it unchanged. InputError when
 * another edit is under way or the file can't be written; errors of `next` pass through.
 */
export const editExclusively = async (
  path: string,
  next: () => Promise<string | undefined>,
): Promise<boolean> => {
  const failed = (cause: unknown): never => {
    const isLocked = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new InputError(
      isLocked
        ? `${path} is being edited by another process: ${beside} exists; try again when that is done, or delete that file if no such process runs`
        : `${path} can't be written: ${messageOf(cause)}`,
      { cause },
    )
  }
  // A link is followed, so that its target is replaced and not the link.
  const target = await realpath(path).catch(() => path)
  const beside = `${target}.new`
  const handle = await open(beside, 'wx').catch(failed)
  let isReplaced = false
  try {
    const text = await next()
    if (text === undefined) return false
    await write(handle, text, target).catch(failed)
    await rename(beside, target).catch(failed)
    isReplaced = true
  } finally {
    await handle.close()
    // Once renamed it is no longer ours: the next process may already have created another.
    if (!isReplaced) await rm(beside, { force: true })
  }
  // So that the rename survives a power cut.
  await using directory = await open(dirname(target), 'r')
  await directory.sync()
  return true
}

const write = async (handle: FileHandle, text: string, target: string): Promise<void> => {
  const former = await stat(target).catch(() => undefined)
  if (former) await handle.chmod(former.mode & 0o7777)
  await handle.writeFile(text)
  await handle.sync()
}
