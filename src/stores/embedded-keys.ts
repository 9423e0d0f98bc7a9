// API keys and subscribers in the embedded store: a row each, and the former hashes of keys in a table of their own.
// Takes over files that an earlier version wrote.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { type Attempt, inTransaction } from './embedded-attempt.ts'
import type { KeyRecord, KeyStore, Subscriber } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS subscribers (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, subscriber_id TEXT NOT NULL REFERENCES subscribers (id),
    tier TEXT NOT NULL, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
`
// What each version of the schema added to the one before; a file says by its user_version how many it has.
const additions = [
  `ALTER TABLE keys ADD COLUMN own_limit INTEGER;
   CREATE TABLE former_hashes (
     hash TEXT PRIMARY KEY, key_id TEXT NOT NULL REFERENCES keys (id), valid_until INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX former_hashes_by_key ON former_hashes (key_id);`,
]

const bringUpToDate = (db: DatabaseSync): void => {
  const version = () => Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (version() === additions.length) return
  // Looked at again inside the transaction, because another process may be opening the file too.
  inTransaction(db, () => {
    if (version() > additions.length) throw new Error('it was written by a newer version of this program')
    db.exec(schema)
    for (const addition of additions.slice(version())) db.exec(addition)
    db.exec(`PRAGMA user_version = ${additions.length}`)
  })
}

export const embeddedKeys = (db: DatabaseSync, attempt: Attempt): KeyStore => {
  bringUpToDate(db)
  const statements = {
    addKey: db.prepare(
      `INSERT INTO keys (id, hash, subscriber_id, tier, own_limit, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    addFormer: db.prepare(`INSERT INTO former_hashes VALUES (?, ?, ?)`),
    findKey: db.prepare(`SELECT * FROM keys WHERE id = ?`),
    formersOf: db.prepare(
      `SELECT hash, valid_until FROM former_hashes WHERE key_id = ? ORDER BY valid_until, hash`,
    ),
    findByHash: db.prepare(
      `SELECT id, NULL AS valid_until FROM keys WHERE hash = ?1
       UNION ALL SELECT key_id, valid_until FROM former_hashes WHERE hash = ?1`,
    ),
    listKeys: db.prepare(`SELECT * FROM keys ORDER BY created_at, id`),
    changeKey: db.prepare(`UPDATE keys SET tier = ?, own_limit = ?, revoked_at = ? WHERE id = ?`),
    shortenFormers: db.prepare(
      `UPDATE former_hashes SET valid_until = MIN(valid_until, ?2) WHERE key_id = ?1`,
    ),
    replaceHash: db.prepare(`UPDATE keys SET hash = ? WHERE id = ?`),
    addSubscriber: db.prepare(`INSERT INTO subscribers VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`),
    findSubscriber: db.prepare(`SELECT * FROM subscribers WHERE id = ?1 OR name = ?1 ORDER BY id = ?1 DESC`),
    listSubscribers: db.prepare(`SELECT * FROM subscribers ORDER BY created_at, id`),
    setSubscriberRevoked: db.prepare(`UPDATE subscribers SET revoked_at = ? WHERE id = ?`),
  }
  const keyOf = (row: Row): KeyRecord | undefined =>
    row && {
      id: String(row.id),
      hash: String(row.hash),
      subscriberId: String(row.subscriber_id),
      tier: String(row.tier),
      limit: numberOrNull(row.own_limit),
      createdAt: Number(row.created_at),
      revokedAt: numberOrNull(row.revoked_at),
      formers: statements.formersOf
        .all(row.id ?? '')
        .map(former => ({ hash: String(former.hash), validUntil: Number(former.valid_until) })),
    }
  const readKey = (id: string) => keyOf(statements.findKey.get(id))

  return {
    addKey: ({ id, hash, subscriberId, tier, limit, createdAt, revokedAt, formers }) =>
      attempt(() =>
        inTransaction(db, () => {
          statements.addKey.run(id, hash, subscriberId, tier, limit, createdAt, revokedAt)
          for (const former of formers) statements.addFormer.run(former.hash, id, former.validUntil)
        }),
      ),
    findKey: id => attempt(() => readKey(id)),
    findByHash: hash =>
      attempt(() => {
        const row = statements.findByHash.get(hash)
        const key = row && readKey(String(row.id))
        const subscriber = key && subscriberOf(statements.findSubscriber.get(key.subscriberId))
        return key && subscriber && { key, subscriber, validUntil: numberOrNull(row.valid_until) }
      }),
    listKeys: () => attempt(() => statements.listKeys.all().flatMap(row => keyOf(row) ?? [])),
    changeKey: (id, change) =>
      attempt(() =>
        inTransaction(db, () => {
          const key = readKey(id)
          if (!key) return false
          const { tier, limit, revokedAt } = { ...key, ...change }
          statements.changeKey.run(tier, limit, revokedAt, id)
          return true
        }),
      ),
    replaceHash: (id, hash, formerValidUntil) =>
      attempt(() =>
        inTransaction(db, () => {
          const key = readKey(id)
          if (!key) return false
          statements.shortenFormers.run(id, formerValidUntil)
          statements.addFormer.run(key.hash, id, formerValidUntil)
          statements.replaceHash.run(hash, id)
          return true
        }),
      ),
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
  }
}

type Row = Record<string, SQLOutputValue> | undefined

const numberOrNull = (value: SQLOutputValue | undefined): number | null =>
  value == null ? null : Number(value)

const subscriberOf = (row: Row): Subscriber | undefined =>
  row && {
    id: String(row.id),
    name: String(row.name),
    createdAt: Number(row.created_at),
    revokedAt: numberOrNull(row.revoked_at),
  }
