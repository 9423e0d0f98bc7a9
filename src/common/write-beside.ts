// Writes a file beside its place and renames it when it is whole: readers see the old file or the new one. The file beside has a random
// name and is created with O_EXCL, so that nobody can prepare it.

import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** Opens a new file; nothing may be at its path. @param mode 0o600 for its owner only */
export const openNewFile = (path: string, mode: number): Promise<FileHandle> =>
  open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)

/**
 * Resolves when the file is on disk under its name.
 * @param force whether it replaces a file of that name. Without it a file that appears meanwhile stays, with EEXIST
 * @param fill writes the file beside, and closes its handle or leaves it open
 */
export const writeBeside = async <Filled>(
  path: string,
  { mode, force }: { readonly mode: number; readonly force: boolean },
  fill: (beside: string, handle: FileHandle) => Promise<Filled>,
): Promise<Filled> => {
  const beside = `${path}.${randomBytes(6).toString('hex')}.part`
  const handle = await openNewFile(beside, mode)
  try {
    const filled = await fill(beside, handle).finally(() => handle.close().catch(() => {}))
    await sync(beside)
    // Takes the name first. A hard link would do both in one step, but memory cards and network shares have none.
    if (!force) await (await openNewFile(path, mode)).close()
    await rename(beside, path)
    // So that the name survives a power cut.
    await sync(dirname(path))
    return filled
  } finally {
    await rm(beside, { force: true })
  }
}

const sync = async (path: string): Promise<void> => {
  await using opened = await open(path, 'r')
  await opened.sync()
}

/** Whether it is a device or a named pipe, which takes what comes and is not replaced. */
export const isSink = async (path: string): Promise<boolean> => {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && (found.isCharacterDevice() || found.isFIFO())
}
