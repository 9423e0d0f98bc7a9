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
  if (path === undefined) {
    // A key that nobody sees is lost.
    const write = (text: string): Promise<void> =>
      terminal.writeAll(text).catch(cause => {
        throw new InputError(`standard output can't be written: ${messageOf(cause)}`, { cause })
      })
    return {
      write,
      end: write,
      [Symbol.asyncDispose]: async () => {},
    }
  }
  const file = await openNew(path)
  return {
    write: async text => {
      await file.appendFile(text)
      // A key that is created and not on disk is lost when the power fails.
      await file.datasync()
    },
    end: async (text, isKept) => {
      if (isKept) await file.appendFile(text)
      else await rm(path)
    },
    [Symbol.asyncDispose]: () => file.close(),
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
