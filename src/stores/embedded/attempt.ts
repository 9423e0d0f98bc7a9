// How the parts of the embedded store run their steps. SQLite is synchronous; the promises are the contract's and carry its
// errors. Steps that belong together run in one transaction, which also writes to the disk only once.

import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { AbohawaError, messageOf } from '../../errors.ts'
import { maxCounted, type RecordObserver } from '../records.ts'
import { StoreError } from '../store.ts'

/** Runs a step and wraps its errors in StoreError. */
export type Attempt = <Value>(step: () => Value) => Promise<Value>

/** The shared parts of all modules of the store. */
export type EmbeddedParts = {
  readonly db: DatabaseSync
  readonly clock: Clock
  readonly attempt: Attempt
  readonly observer: RecordObserver
}

/** SQL for a column that holds a valid count or instant, and NULL for any other value, which is then not even read. */
export const wholeSql = (column: string): string =>
  `CASE WHEN ${column} BETWEEN 0 AND ${maxCounted} THEN ${column} END`

/** @param path of the file, for error messages */
export const attemptsOn =
  (path: string): Attempt =>
  async step => {
    try {
      return step()
    } catch (cause) {
      if (cause instanceof AbohawaError) throw cause
      throw new StoreError(`the embedded store ${path} failed: ${messageOf(cause)}`, { cause })
    }
  }

/** The primary result code of SQLite, 0 for another error. */
export const sqliteCodeOf = (error: unknown): number =>
  error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0

/** Whether the file could not be written: the disk is full or fails. */
export const isUnwritten = (error: unknown): boolean => {
  const code = sqliteCodeOf(error)
  return code === sqliteFull || code === sqliteIoError
}
// Primary result codes; the upper bits have details.
const sqliteIoError = 10
const sqliteFull = 13

/** Runs a step as one write transaction, which is rolled back when it throws. */
export const inTransaction = <Value>(db: DatabaseSync, step: () => Value): Value => {
  db.exec('BEGIN IMMEDIATE')
  try {
    const value = step()
    db.exec('COMMIT')
    return value
  } catch (error) {
    // Some failures end the transaction themselves.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Runs a step that writes nothing to the file, while no other process may write to it. A full disk is no obstacle. */
export const underLock = <Value>(db: DatabaseSync, step: () => Value): Value => {
  db.exec('BEGIN IMMEDIATE')
  try {
    return step()
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK')
  }
}
