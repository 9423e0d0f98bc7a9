// Copies the file of an embedded store with SQLite's own backup, while gateways go on writing. The copy is one file, with what is still
// in the -wal. The store does not change: it keeps the format of its version.

import { backup, DatabaseSync } from 'node:sqlite'

export type BackupProgress = (copiedPages: number, pages: number) => void

/** What a copy has. `usage` is the number of counts of a day. */
export type BackedUp = { readonly subscribers: number; readonly keys: number; readonly usage: number }

const pagesPerStep = 1_000
const busyTimeoutMs = 5_000

/**
 * @param to an empty file, which is the copy when this resolves
 * @throws Error when the store can't be read, or the copy can't be written or is damaged
 */
export const backUp = async (path: string, to: string, onProgress: BackupProgress): Promise<BackedUp> => {
  using from = new DatabaseSync(path, { timeout: busyTimeoutMs })
  // A read transaction: without it every count of a gateway would restart the copy.
  from.exec('BEGIN')
  from.prepare('SELECT 1 FROM keys').get()
  await backup(from, to, {
    rate: pagesPerStep,
    progress: ({ remainingPages, totalPages }) => onProgress(totalPages - remainingPages, totalPages),
  })
  return checked(to)
}

const checked = (copy: string): BackedUp => {
  using db = new DatabaseSync(copy)
  // So the copy has no -wal or -shm, not even while it is read. A gateway that opens it changes the mode back.
  db.exec('PRAGMA journal_mode = DELETE')
  const fault = db.prepare('PRAGMA integrity_check(1)').get()?.integrity_check
  if (fault !== 'ok') throw new Error(`the copy is damaged: ${String(fault).split('\n').at(-1)}`)
  const countIn = (table: string) => Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)
  return { subscribers: countIn('subscribers'), keys: countIn('keys'), usage: countIn('usage') }
}
