// Where created keys go: standard output, or a new file that its owner alone can read, written to disk key by key.

import { type FileHandle, rm } from 'node:fs/promises'
import { InputError, messageOf } from '../../common/errors.ts'
import type { Terminal } from '../terminal.ts'
import { openNewFile } from '../writable.ts'

type Output = {
  write(text: string): Promise<void>
  /** @param isKept false removes a file with nothing in it */
  end(text: string, isKept: boolean): Promise<void>
} & AsyncDisposable

/** @throws InputError for a file that is there or can't be written */
export const openOutput = async (terminal: Terminal, path: string | undefined): Promise<Output> => {
  const file = path === undefined ? undefined : await openNew(path)
  const write = async (text: string): Promise<void> => {
    await file?.appendFile(text)
    // A key that is created and not on disk is lost when the power fails.
    if (file) return file.datasync()
    // A key that nobody sees is lost.
    await terminal.writeAll(text).catch(cause => {
      throw new InputError(`standard output can't be written: ${messageOf(cause)}`, { cause })
    })
  }
  return {
    write,
    end: (text, isKept) => (path === undefined || isKept ? write(text) : rm(path)),
    [Symbol.asyncDispose]: async () => file?.close(),
  }
}

const openNew = async (path: string): Promise<FileHandle> => {
  try {
    return await openNewFile(path)
  } catch (cause) {
    const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    throw new InputError(
      isThere
        ? `--out is ${path}, which is there already; allowed: a new file`
        : `--out is ${path}, which can't be written: ${messageOf(cause)}`,
      { cause },
    )
  }
}
