// The file of the embedded store: readable only by its owner, because it names subscribers. SQLite would use the process's umask; it
// gives its -wal and -shm the mode of the file.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { createRegularFile } from '../../common/regular-file.ts'

/** Creates the file and its folder if they are missing; existing ones are unchanged. */
export const prepareStoreFile = (path: string): void => {
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { mode: 0o700 })
  createRegularFile(path, 0o600)
}

/** The file and those beside it. */
export const storeFiles = (path: string): string[] => ['', '-wal', '-shm'].map(end => path + end)

/** The first of the store's files that other users of the machine may read or write. */
export const exposedStoreFile = (path: string): string | undefined =>
  storeFiles(path).find(file => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o007) !== 0
  })
