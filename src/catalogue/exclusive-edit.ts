// Edits a file exclusively and atomically. The new text goes to a file beside it that only one process can create: it is the
// lock and, once synced to disk, the replacement. Readers see the old file or the new one.

import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { InputError, messageOf } from '../errors.ts'

const codeOf = (thrown: unknown): unknown => (thrown as { code?: unknown } | null)?.code

const ifPresent = <T>(answer: Promise<T>): Promise<T | undefined> =>
  answer.catch((thrown: unknown) => {
    if (codeOf(thrown) === 'ENOENT') return undefined
    throw thrown
  })

const lock = async (path: string, beside: string): Promise<FileHandle> =>
  open(beside, 'wx').catch((thrown: unknown) => {
    if (codeOf(thrown) !== 'EEXIST') throw thrown
    throw new InputError(
      `${path} is being edited by another process: ${beside} exists; try again when that is done, ` +
        'or delete that file if no such process runs',
      { cause: thrown },
    )
  })

// Syncs the directory, so that the rename survives a power cut.
const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(dirname(path), 'r')
  await directory.sync().finally(() => directory.close())
}

// After the rename the lock file is no longer ours: the next process may already have created another.
const replace = async (target: string, beside: string, handle: FileHandle, text: string): Promise<void> => {
  const former = await ifPresent(stat(target))
  if (former) await handle.chmod(former.mode & 0o7777)
  await handle.writeFile(text)
  await handle.sync()
  await rename(beside, target)
}

/**
 * Replaces the file with the text that `next` returns, under the lock; undefined leaves it unchanged. InputError when
 * another edit is under way or the file cannot be written; errors of `next` pass through.
 */
export const editExclusively = async (
  path: string,
  next: () => Promise<string | undefined>,
): Promise<boolean> => {
  try {
    // A link is followed, so that its target is replaced and not the link.
    const target = (await ifPresent(realpath(path))) ?? path
    const beside = `${target}.new`
    const handle = await lock(path, beside)
    let replaced = false
    try {
      const text = await next()
      if (text === undefined) return false
      await replace(target, beside, handle, text)
      replaced = true
    } finally {
      await handle.close()
      if (!replaced) await rm(beside, { force: true })
    }
    await syncDirectory(target)
    return true
  } catch (thrown) {
    if (codeOf(thrown) === undefined || thrown instanceof InputError) throw thrown
    throw new InputError(`${path} cannot be written: ${messageOf(thrown)}`, { cause: thrown })
  }
}
