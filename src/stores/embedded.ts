// The store for one process with nothing to install: an SQLite file in WAL mode. A write is in the operating system's
// hands before its promise resolves, so a killed process loses nothing that was answered for; commands run beside a
// serving gateway see and change the same file.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { InputError, messageOf } from '../errors.ts'
import { embeddedFleet } from './embedded-fleet.ts'
import { embeddedSpending } from './embedded-spending.ts'
import { createLocalFlights } from './local-flights.ts'
import { type KeyRecord, type Store, StoreError, type Subscriber } from './store.ts'

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA journal_size_limit = 16777216;
  CREATE TABLE IF NOT EXISTS subscribers (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, subscriber_id TEXT NOT NULL REFERENCES subscribers (id),
    tier TEXT NOT NULL, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS usage (
    key_id TEXT NOT NULL, day TEXT NOT NULL, used INTEGER NOT NULL, last_taken INTEGER NOT NULL,
    keep_until INTEGER NOT NULL, PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS bytes (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS bytes_by_expiry ON bytes (expires_at);
`
const sweepEveryWrites = 500
const busyTimeoutMs = 5_000

/** @param path of the file, made when absent; `:memory:` keeps nothing. @throws InputError when it can't be opened */
export const openEmbeddedStore = (path: string, clock: Clock): Store => {
  try {
    if (path !== ':memory:' && !existsSync(dirname(path))) mkdirSync(dirname(path))
    return storeOn(new DatabaseSync(path, { timeout: busyTimeoutMs }), path, clock)
  } catch (cause) {
    throw new InputError(
      `store.path is ${path}, which can't be opened and written as an SQLite file: ${messageOf(cause)}`,
      { cause },
    )
  }
}

const storeOn = (db: DatabaseSync, path: string, clock: Clock): Store => {
  db.exec(schema)
  const statements = {
    addKey: db.prepare(`INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)`),
    findKey: db.prepare(`SELECT * FROM keys WHERE id = ?`),
    findByHash: db.prepare(
      `SELECT k.*, s.name AS s_name, s.created_at AS s_created_at, s.revoked_at AS s_revoked_at
       FROM keys k JOIN subscribers s ON s.id = k.subscriber_id WHERE k.hash = ?`,
    ),
    listKeys: db.prepare(`SELECT * FROM keys ORDER BY created_at, id`),
    setKeyRevoked: db.prepare(`UPDATE keys SET revoked_at = ? WHERE id = ?`),
    addSubscriber: db.prepare(`INSERT INTO subscribers VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`),
    findSubscriber: db.prepare(`SELECT * FROM subscribers WHERE id = ?1 OR name = ?1 ORDER BY id = ?1 DESC`),
    listSubscribers: db.prepare(`SELECT * FROM subscribers ORDER BY created_at, id`),
    setSubscriberRevoked: db.prepare(`UPDATE subscribers SET revoked_at = ? WHERE id = ?`),
    // One statement, so that a command in another process can't come between the check and the count.
    take: db.prepare(
      `INSERT INTO usage VALUES (:key, :day, MIN(:units, :limit), MIN(:units, :limit), :keep)
       ON CONFLICT (key_id, day) DO UPDATE SET
         last_taken = MAX(0, MIN(:units, :limit - used)), used = used + MAX(0, MIN(:units, :limit - used))
       RETURNING last_taken, used`,
    ),
    usedOn: db.prepare(`SELECT used FROM usage WHERE key_id = ? AND day = ?`),
    readBytes: db.prepare(`SELECT value FROM bytes WHERE key = ? AND expires_at > ?`),
    writeBytes: db.prepare(
      `INSERT INTO bytes VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    ),
    deleteBytes: db.prepare(`DELETE FROM bytes WHERE key = ?`),
    sweepBytes: db.prepare(`DELETE FROM bytes WHERE expires_at <= ?`),
    sweepUsage: db.prepare(`DELETE FROM usage WHERE keep_until <= ?`),
  }
  const lastWritten = new LRUCache<string, number>({ max: 10_000 })
  let writes = 0
  const sweep = () => {
    statements.sweepBytes.run(clock.now())
    statements.sweepUsage.run(clock.now())
  }
  sweep()

  // SQLite answers at once; the promises are the contract's, and carry its errors.
  const attempt = async <Result>(step: () => Result): Promise<Result> => {
    try {
      return step()
    } catch (cause) {
      throw new StoreError(`the embedded store ${path} failed: ${messageOf(cause)}`, { cause })
    }
  }

  return {
    kind: 'embedded',
    addKey: ({ id, hash, subscriberId, tier, createdAt, revokedAt }) =>
      attempt(() => {
        statements.addKey.run(id, hash, subscriberId, tier, createdAt, revokedAt)
      }),
    findKey: id => attempt(() => keyOf(statements.findKey.get(id))),
    findByHash: hash =>
      attempt(() => {
        const row = statements.findByHash.get(hash)
        const key = keyOf(row)
        const subscriber = subscriberOf(
          row && {
            id: row.subscriber_id ?? '',
            name: row.s_name ?? '',
            created_at: row.s_created_at ?? 0,
            revoked_at: row.s_revoked_at ?? null,
          },
        )
        return key && subscriber ? { key, subscriber } : undefined
      }),
    listKeys: () => attempt(() => statements.listKeys.all().flatMap(row => keyOf(row) ?? [])),
    setKeyRevoked: (id, at) => attempt(() => statements.setKeyRevoked.run(at, id).changes === 1),
    ensureSubscriber: subscriber =>
      attempt(() => {
        statements.addSubscriber.run(
          subscriber.id,
          subscriber.name,
          subscriber.createdAt,
          subscriber.revokedAt,
        )
        return subscriberOf(statements.findSubscriber.get(subscriber.name)) ?? subscriber
      }),
    findSubscriber: idOrName => attempt(() => subscriberOf(statements.findSubscriber.get(idOrName))),
    listSubscribers: () =>
      attempt(() => statements.listSubscribers.all().flatMap(row => subscriberOf(row) ?? [])),
    setSubscriberRevoked: (id, at) =>
      attempt(() => statements.setSubscriberRevoked.run(at, id).changes === 1),
    take: ({ keyId, day, units, limit, keepUntil }) =>
      attempt(() => {
        // All rows and not the first: only a statement that ran to its end lets SQLite put the log back into the file.
        const [row] = statements.take.all({ key: keyId, day, units, limit, keep: keepUntil })
        return { taken: Number(row?.last_taken), used: Number(row?.used) }
      }),
    usedOn: (keyId, days) =>
      attempt(() => days.map(day => Number(statements.usedOn.get(keyId, day)?.used ?? 0))),
    readBytes: key =>
      attempt(() => {
        const value = statements.readBytes.get(key, clock.now())?.value
        return value instanceof Uint8Array
          ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
          : undefined
      }),
    writeBytes: (key, bytes, expiresAt, token) =>
      attempt(() => {
        if (token !== undefined && (lastWritten.get(key) ?? 0) > token) return false
        if (token !== undefined) lastWritten.set(key, token)
        statements.writeBytes.run(key, bytes, expiresAt)
        writes += 1
        if (writes % sweepEveryWrites === 0) sweep()
        return true
      }),
    deleteBytes: keys =>
      attempt(() => {
        // One transaction: thousands of them would keep the event loop for as many writes to the disk.
        db.exec('BEGIN IMMEDIATE')
        const removed = keys.reduce((sum, key) => sum + Number(statements.deleteBytes.run(key).changes), 0)
        db.exec('COMMIT')
        return removed
      }),
    ...createLocalFlights(),
    ...embeddedFleet(db, attempt),
    ...embeddedSpending(db, attempt),
    ping: () => attempt(() => void db.prepare('SELECT 1').get()),
    close: () =>
      attempt(() => {
        if (db.isOpen) db.close()
      }),
  }
}

type Row = Record<string, SQLOutputValue> | undefined

const instantOrNull = (value: SQLOutputValue | undefined): number | null =>
  value == null ? null : Number(value)

const keyOf = (row: Row): KeyRecord | undefined =>
  row && {
    id: String(row.id),
    hash: String(row.hash),
    subscriberId: String(row.subscriber_id),
    tier: String(row.tier),
    createdAt: Number(row.created_at),
    revokedAt: instantOrNull(row.revoked_at),
  }

const subscriberOf = (row: Row): Subscriber | undefined =>
  row && {
    id: String(row.id),
    name: String(row.name),
    createdAt: Number(row.created_at),
    revokedAt: instantOrNull(row.revoked_at),
  }
