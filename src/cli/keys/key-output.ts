// The output of new keys: standard output, or a private new file. It also tracks keys that were shown but perhaps not stored.

import { type FileHandle, rm } from 'node:fs/promises'
import { counted, type Terminal } from '../../command-line/terminal.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { openNewFile } from '../../common/write-beside.ts'
import type { CreatedKey } from '../../keys/administration.ts'

const maxNamed = 20

/** New keys that were shown and are not known to be stored. */
export const createUnsure = () => {
  const ids = new Set<string>()
  const text = (): string => {
    if (ids.size === 0) return ''
    const more = ids.size > maxNamed ? [`and ${counted(ids.size - maxNamed)} more`] : []
    return `; shown, but perhaps not valid: ${[...[...ids].slice(0, maxNamed), ...more].join(', ')}`
  }
  return {
    text,
    add: (planned: readonly CreatedKey[]): void => {
      for (const { id, existed } of planned) if (!existed) ids.add(id)
    },
    remove: (created: readonly CreatedKey[]): void => {
      for (const { id } of created) ids.delete(id)
    },
    /** @throws InputError when another command took their external ids meanwhile */
    refuse: (): void => {
      if (ids.size > 0) throw new InputError(`another command created keys of the same external ids${text()}`)
    },
  }
}

type Output = {
  /** Resolves when all of it is there; of a file nothing of it stays when it rejects. */
  write(text: string): Promise<void>
  /** @param isKept false removes a file with nothing in it */
  end(text: string, isKept: boolean): Promise<void>
} & AsyncDisposable

/** @throws InputError for a file that is there or can't be written */
export const openOutput = async (terminal: Terminal, path: string | undefined): Promise<Output> => {
  const file = path === undefined ? undefined : await openNewOutput(path)
  let bytes = 0
  const write = async (text: string): Promise<void> => {
    if (!file) return terminal.writeSeen(text)
    try {
      const part = Buffer.from(text)
      for (let at = 0; at < part.length; )
        at += (await file.write(part, at, part.length - at, bytes + at)).bytesWritten
      // A key that is created and not on disk is lost when the power fails.
      await file.datasync()
      bytes += part.length
    } catch (cause) {
      await file.truncate(bytes).catch(() => {})
      throw new InputError(`--out can't be written: ${messageOf(cause)}`, { cause })
    }
  }
  return {
    write,
    end: (text, isKept) => (path === undefined || isKept ? write(text) : rm(path)),
    [Symbol.asyncDispose]: async () => file?.close(),
  }
}

const openNewOutput = async (path: string): Promise<FileHandle> => {
  try {
    return await openNewFile(path, 0o600)
  } catch (cause) {
    throw new InputError(`--out is ${path}, which can't be written: ${messageOf(cause)}`, { cause })
  }
}
