// The shared cache tier in the embedded store: its entries in the file. The leases of their loads are in memory.

import { maxBytesRead } from '../records.ts'
import type { ByteStore, LeaseStore } from '../store.ts'
import { createLeases } from './leases.ts'
import type { EmbeddedParts } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS bytes (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS bytes_by_expiry ON bytes (expires_at);
`
const sweepEveryWrites = 500
// More than were written since, so that none stay. Most entries of a model run expire at one instant.
const sweptAtOnce = 1_000

export const embeddedBytes = ({
  db,
  clock,
  withRetry,
  transaction,
}: EmbeddedParts): ByteStore & LeaseStore => {
  db.exec(schema)
  const statements = {
    // SQLite knows the length of a value without reading it.
    readBytes: db.prepare(
      `SELECT CASE WHEN length(value) <= ? THEN value END AS value FROM bytes WHERE key = ? AND expires_at > ?`,
    ),
    writeBytes: db.prepare(
      `INSERT INTO bytes VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    ),
    keysBetween: db.prepare(`SELECT key FROM bytes WHERE key BETWEEN ? AND ? AND expires_at > ? LIMIT ?`),
    deleteBytes: db.prepare(`DELETE FROM bytes WHERE key = ?`),
    sweepBytes: db.prepare(
      `DELETE FROM bytes WHERE key IN (SELECT key FROM bytes WHERE expires_at <= ? LIMIT ${sweptAtOnce})`,
    ),
  }
  let writes = 0
  // Nobody waits while the store is opened.
  db.prepare('DELETE FROM bytes WHERE expires_at <= ?').run(clock.now())

  // Cells come in rows, so their entries lie side by side: one walk finds them, twenty times as fast as a look-up of each. Keys that
  // lie far apart are halved.
  const keysAround = (sorted: readonly string[], endAfter: number): unknown[] => {
    const [first = '', last = ''] = [sorted[0], sorted.at(-1)]
    const most = 2 * sorted.length + 1
    const rows = statements.keysBetween.all(first, last, endAfter, most)
    if (rows.length < most) return rows.map(({ key }) => key)
    const half = sorted.length / 2
    return [sorted.slice(0, half), sorted.slice(half)].flatMap(part => keysAround(part, endAfter))
  }
  const thereOf = (keys: readonly string[], endAfter: number): boolean[] => {
    const found = new Set(keysAround(keys.toSorted(), endAfter))
    return keys.map(key => found.has(key))
  }

  // Monotonic time: a lease keeps its length when the clock jumps.
  const leases = createLeases(() => performance.now())

  return {
    readBytes: (key, most = maxBytesRead) =>
      withRetry(() => {
        const row = statements.readBytes.get(most, key, clock.now())
        const value = row?.value
        if (value === null) return 'too_large'
        return value instanceof Uint8Array
          ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
          : undefined
      }),
    writeBytes: (key, bytes, expiresAt, holder) =>
      withRetry(() => {
        if (holder !== undefined && !leases.isHolder(key, holder)) return false
        statements.writeBytes.run(key, bytes, expiresAt)
        writes += 1
        if (writes % sweepEveryWrites === 0) statements.sweepBytes.run(clock.now())
        return true
      }),
    hasBytes: keys => withRetry(() => thereOf(keys, clock.now())),
    deleteBytes: keys =>
      transaction(() => {
        const isThere = thereOf(keys, 0)
        return keys
          .filter((_, i) => isThere[i])
          .reduce((sum, key) => sum + Number(statements.deleteBytes.run(key).changes), 0)
      }),
    acquireLease: leases.acquireLease,
    renewLease: leases.renewLease,
    releaseLease: leases.releaseLease,
  }
}
