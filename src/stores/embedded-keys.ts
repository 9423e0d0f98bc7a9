// API keys and subscribers in the embedded store.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { KeyRecord, KeyStore, Subscriber } from './store.ts'

type Attempt = <Value>(step: () => Value) => Promise<Value>

const schema = `
  CREATE TABLE IF NOT EXISTS subscribers (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, subscriber_id TEXT NOT NULL REFERENCES subscribers (id),
    tier TEXT NOT NULL, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
`

export const embeddedKeys = (db: DatabaseSync, attempt: Attempt): KeyStore => {
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
  }
  return {
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
