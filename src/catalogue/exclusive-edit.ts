// One edit of a file at a time, and never half of one. The new text goes to a file beside it that only one process can
// create, which is both the lock and, once it is safely on disk, the replacement. Readers see the old file or the new.

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
      `${path} is being edited by another process, for ${beside} exists; try again when that is done, ` +
        'and if no such process runs any more, delete that file',
      { cause: thrown },
    )
  })

// The rename itself must outlive a power cut, and that is the directory's to remember.
const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(dirname(path), 'r')
  await directory.sync().finally(() => directory.close())
}

// Once renamed, the file beside is no longer ours: whoever locks next may already have made another.
const replace = async (target: string, beside: string, handle: FileHandle, text: string): Promise<void> => {
  const former = await ifPresent(stat(target))
  if (former) await handle.chmod(former.mode & 0o7777)
  await handle.writeFile(text)
  await handle.sync()
  await rename(beside, target)
}

/**
 * Replaces the file by the text that `next` makes while nobody else can edit it; undefined leaves it as it is.
 * InputError when another edit is under way or the file cannot be written; what `next` throws passes through.
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
