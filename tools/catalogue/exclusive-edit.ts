// Edits a file exclusively: a file beside it that only one process can create is the lock. Readers see the old file or the new one.

import { open, realpath, rm, stat } from 'node:fs/promises'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { writeBeside } from 'abohawa/common/write-beside.ts'

/**
 * Replaces the file with the text that `next` returns, under the lock; undefined leaves it unchanged. InputError when
 * another edit is under way or the file can't be written; errors of `next` pass through.
 */
export const editExclusively = async (
  path: string,
  next: () => Promise<string | undefined>,
): Promise<boolean> => {
  // A link is followed, so that its target is replaced and not the link.
  const target = await realpath(path).catch(() => path)
  const lock = `${target}.new`
  const failed = (cause: unknown): never => {
    const isLocked = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new InputError(
      isLocked
        ? `${path} is being edited by another process: ${lock} exists; try again when that is done, or delete that file if no such process runs`
        : `${path} can't be written: ${messageOf(cause)}`,
      { cause },
    )
  }
  await (await open(lock, 'wx').catch(failed)).close()
  try {
    const text = await next()
    if (text === undefined) return false
    const former = await stat(target).catch(() => undefined)
    await writeBeside(target, { mode: 0o666, force: true }, async (_, handle) => {
      if (former) await handle.chmod(former.mode & 0o7777)
      await handle.writeFile(text)
    }).catch(failed)
    return true
  } finally {
    await rm(lock, { force: true })
  }
}
