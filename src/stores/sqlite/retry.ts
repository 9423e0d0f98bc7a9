// Runs the steps of the embedded store. SQLite is synchronous; the promises are the contract's and carry its errors. While another
// program holds the write lock, a step that writes is tried again between turns of the event loop, so that everything else goes on.

import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../common/clock.ts'
import { AbohawaError, messageOf } from '../../common/errors.ts'
import { maxCounted, type RecordObserver } from '../records.ts'
import { StoreError } from '../store.ts'

/** Runs a step and wraps its errors in StoreError. */
type Run = <Value>(step: () => Value) => Promise<Value>

/** The shared parts of all modules of the store. */
export type EmbeddedParts = {
  readonly db: DatabaseSync
  readonly clock: Clock
  readonly withRetry: Run
  /** Retries a step whose first run failed with this error. */
  readonly retryAfter: <Value>(step: () => Value, error: unknown) => Promise<Value>
  /** For what an operator waits for, and nothing repeats. */
  readonly withLongRetry: Run
  /** The same, as one write transaction. */
  readonly transaction: Run
  readonly observer: RecordObserver
}

/** SQL for a column that holds a valid count or instant, and NULL for any other value, which is then not even read. */
export const wholeSql = (column: string): string =>
  `CASE WHEN ${column} BETWEEN 0 AND ${maxCounted} THEN ${column} END`

// Requests wait for a count or a reservation, and go on from local allowances then.
const retryForMs = 50
const longRetryForMs = 5_000
const longestPauseMs = 16

/** @param path of the file, for error messages */
export const retriesOn = (
  path: string,
  db: DatabaseSync,
): Pick<EmbeddedParts, 'withRetry' | 'retryAfter' | 'withLongRetry' | 'transaction'> => {
  const faultOf = (cause: unknown): unknown =>
    cause instanceof AbohawaError
      ? cause
      : new StoreError(`the embedded store ${path} failed: ${sqliteReason(cause)}`, { cause })
  // A step that meets the lock is run again as a whole, which changes nothing twice.
  const retryFor = async <Value>(ms: number, step: () => Value, error: unknown): Promise<Value> => {
    if (!isLocked(error)) throw faultOf(error)
    const until = performance.now() + ms
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      await pause(pauseMs)
      try {
        return step()
      } catch (cause) {
        if (!isLocked(cause) || performance.now() >= until) throw faultOf(cause)
      }
    }
  }
  const runFor =
    (ms: number): Run =>
    async step => {
      try {
        return step()
      } catch (error) {
        return retryFor(ms, step, error)
      }
    }
  const withLongRetry = runFor(longRetryForMs)
  return {
    withRetry: runFor(retryForMs),
    retryAfter: (step, error) => retryFor(retryForMs, step, error),
    withLongRetry,
    transaction: step => withLongRetry(() => inTransaction(db, step)),
  }
}

/** Whether another program holds the lock of the file. */
const isLocked = (error: unknown): boolean => sqliteCodeOf(error) === sqliteBusy

/** The reason in the words of an operator. */
export const sqliteReason = (error: unknown): string =>
  isLocked(error) ? 'another program holds its lock' : messageOf(error)

/** The primary result code of SQLite, 0 for another error; the upper bits have details. */
export const sqliteCodeOf = (error: unknown): number =>
  error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0

const sqliteBusy = 5

/** Runs a step as one write transaction, which is rolled back when it throws. */
export const inTransaction = <Value>(db: DatabaseSync, step: () => Value): Value => {
  db.exec('BEGIN IMMEDIATE')
  try {
    const value = step()
    db.exec('COMMIT')
    return value
  } catch (error) {
    rollBack(db)
    throw error
  }
}

/** Some failures end the transaction themselves. */
export const rollBack = (db: DatabaseSync): void => {
  if (db.isTransaction) db.exec('ROLLBACK')
}
