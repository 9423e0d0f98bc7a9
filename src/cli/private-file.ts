// A file that is written whole or not at all, for its owner alone. The text goes to a file beside it that nobody can have
// prepared: its name is drawn at random, and it is made new or not opened.

import { randomBytes } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { lstat, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** Whether the path is free for a file: nothing is there, or a file or a link, which it replaces. */
export const isFileOrFree = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined
    throw thrown
  })
  return found === undefined || found.isFile() || found.isSymbolicLink()
}

/** Resolves when the file is on the disk under its name. What is thrown has a `syscall` where it is about the file. */
export const writePrivateFile = async (path: string, text: AsyncIterable<string>): Promise<void> => {
  const beside = `${path}.${randomBytes(6).toString('hex')}.part`
  const handle = await open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    await pipeline(text, createWriteStream(beside, { fd: handle, flush: true }))
    await rename(beside, path)
  } catch (cause) {
    await rm(beside, { force: true })
    throw cause
  }
  // The rename itself must outlive a power cut, and that is the directory's to remember.
  const directory = await open(dirname(path), 'r')
  await directory.sync().finally(() => directory.close())
}
