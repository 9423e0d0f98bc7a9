// The embedded store for a single gateway: an SQLite file in WAL mode. A write reaches the operating system before its
// promise resolves, so a killed process loses no count of a response it has sent. CLI commands can use the same file beside
// a running gateway.

import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../common/clock.ts'
import { InputError } from '../../common/errors.ts'
import { maxBytesRead, type RecordObserver, unobserved } from '../records.ts'
import type { Store } from '../store.ts'
import { newerFormat, storeFormat } from '../store-format.ts'
import { attemptsOn, inTransaction, sqliteReason } from './attempt.ts'
import { embeddedFleet } from './fleet.ts'
import { embeddedKeys, formatOf } from './keys.ts'
import { createLocalLeases } from './local-leases.ts'
import { embeddedSpending } from './spending.ts'
import { prepareStoreFile } from './store-file.ts'
import { embeddedUsage } from './usage.ts'
import { embeddedUsageDetail } from './usage-detail.ts'

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA journal_size_limit = 16777216;
  CREATE TABLE IF NOT EXISTS bytes (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS bytes_by_expiry ON bytes (expires_at);
`
const sweepEveryWrites = 500
// For opening alone: afterwards attempt.ts waits, without holding up the event loop.
const busyTimeoutMs = 5_000

/** @param path of the file, created when absent; `:memory:` stores nothing on disk. @throws InputError when it can't be opened */
export const openEmbeddedStore = (
  path: string,
  clock: Clock,
  observer: Partial<RecordObserver> = {},
): Store => {
  let db: DatabaseSync | undefined
  try {
    if (path !== ':memory:') prepareStoreFile(path)
    db = new DatabaseSync(path, { timeout: busyTimeoutMs })
    const before = formatOf(db)
    // Before anything is changed, the journal's mode too.
    if (before > storeFormat) throw newerFormat(`store.path is ${path}`, before)
    return storeOn(db, path, clock, { ...unobserved, ...observer })
  } catch (cause) {
    if (db?.isOpen) db.close()
    if (cause instanceof InputError) throw cause
    throw new InputError(
      `store.path is ${path}, which can't be opened and written as an SQLite file: ${sqliteReason(cause)}`,
      { cause },
    )
  }
}

const storeOn = (db: DatabaseSync, path: string, clock: Clock, observer: RecordObserver): Store => {
  db.exec(schema)
  const parts = { db, clock, ...attemptsOn(path), observer }
  const { attempt, patiently } = parts
  const { closeUsage, ...usage } = embeddedUsage({ ...parts, path })
  const statements = {
    // SQLite knows the length of a value without reading it.
    readBytes: db.prepare(
      `SELECT CASE WHEN length(value) <= ? THEN value END AS value FROM bytes WHERE key = ? AND expires_at > ?`,
    ),
    writeBytes: db.prepare(
      `INSERT INTO bytes VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    ),
    deleteBytes: db.prepare(`DELETE FROM bytes WHERE key = ?`),
    usedBytes: db.prepare(
      `SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()`,
    ),
    sweepBytes: db.prepare(`DELETE FROM bytes WHERE expires_at <= ?`),
  }
  let writes = 0
  const sweep = () => void statements.sweepBytes.run(clock.now())
  sweep()
  const { isHolder, ...leases } = createLocalLeases()
  const opened = {
    ...embeddedKeys(parts),
    ...usage,
    ...embeddedUsageDetail(parts),
    ...leases,
    ...embeddedFleet(parts),
    ...embeddedSpending(parts),
  }
  db.exec('PRAGMA busy_timeout = 0')

  return {
    kind: 'embedded',
    ...opened,
    readBytes: (key, most = maxBytesRead) =>
      attempt(() => {
        const row = statements.readBytes.get(most, key, clock.now())
        const value = row?.value
        if (value === null) return 'too_large'
        return value instanceof Uint8Array
          ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
          : undefined
      }),
    writeBytes: (key, bytes, expiresAt, holder) =>
      attempt(() => {
        if (holder !== undefined && !isHolder(key, holder)) return false
        statements.writeBytes.run(key, bytes, expiresAt)
        writes += 1
        if (writes % sweepEveryWrites === 0) sweep()
        return true
      }),
    deleteBytes: keys =>
      patiently(() =>
        inTransaction(db, () =>
          keys.reduce((sum, key) => sum + Number(statements.deleteBytes.run(key).changes), 0),
        ),
      ),
    ping: () => attempt(() => void db.prepare('SELECT 1').get()),
    size: () => attempt(() => ({ usedBytes: Number(statements.usedBytes.get()?.bytes ?? 0), maxBytes: 0 })),
    close: () =>
      attempt(() => {
        if (!db.isOpen) return
        closeUsage()
        db.close()
      }),
  }
}
