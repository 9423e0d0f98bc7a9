// API keys and subscribers in the embedded store: one row each, and one for each previous hash of a key. A file of an earlier version
// of the same format gets the columns that it lacks.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  keyRecordIn,
  longestRestrictions,
  longestText,
  maxFields,
  nameIn,
  subscriberIn,
  validUntilOf,
} from '../records.ts'
import type { KeyRecord, KeyStore, Subscriber, SubscriberStore } from '../store.ts'
import { storeFormat } from '../store-format.ts'
import { type EmbeddedParts, inTransaction } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS subscribers (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, revoked_at INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, subscriber_id TEXT NOT NULL REFERENCES subscribers (id),
    tier TEXT NOT NULL, own_limit INTEGER, created_at INTEGER NOT NULL, revoked_at INTEGER, expires_at INTEGER,
    external_id TEXT, restrictions TEXT, rates TEXT
  ) STRICT;
  CREATE UNIQUE INDEX IF NOT EXISTS keys_by_external_id ON keys (external_id) WHERE external_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS keys_by_creation ON keys (created_at, id);
  CREATE TABLE IF NOT EXISTS former_hashes (
    hash TEXT PRIMARY KEY, key_id TEXT NOT NULL REFERENCES keys (id), valid_until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS former_hashes_by_key ON former_hashes (key_id);
  PRAGMA user_version = ${storeFormat};
`

// Columns that a file of version 1.0 lacks. That version names the columns that it writes, and leaves these as they are.
const added = ['restrictions', 'rates'] as const
const missingIn = (db: DatabaseSync): string[] => {
  const columns = db.prepare(`SELECT name FROM pragma_table_info('keys')`).all()
  return added.filter(column => !columns.some(({ name }) => name === column))
}

/** The format of a file; 0 for a new one. */
export const formatOf = (db: DatabaseSync): number =>
  Number(db.prepare('PRAGMA user_version').get()?.user_version)

// Columns as text of bounded length: records.ts checks them as it does for Redis.
const asText = (columns: Readonly<Record<string, string>>, longest = longestText): string =>
  Object.entries(columns)
    .map(([name, column]) => `substr(CAST(${column} AS TEXT), 1, ${longest + 1}) AS ${name}`)
    .join(', ')
const created = { id: 'id', createdAt: 'created_at', revokedAt: 'revoked_at' }
const keyColumns = [
  asText({
    ...{ ...created, hash: 'hash', subscriberId: 'subscriber_id', tier: 'tier' },
    ...{ ownLimit: 'own_limit', expiresAt: 'expires_at', externalId: 'external_id' },
  }),
  asText({ restrictions: 'restrictions', rates: 'rates' }, longestRestrictions),
].join(', ')
const subscriberColumns = asText({ ...created, name: 'name' })
const rowsPerPage = 200

const statementsOn = (db: DatabaseSync) => ({
  addKey: db.prepare(
    `INSERT INTO keys
       (id, hash, subscriber_id, tier, own_limit, created_at, revoked_at, expires_at, external_id,
        restrictions, rates)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ),
  removePreviousHashes: db.prepare(
    `DELETE FROM former_hashes WHERE key_id = ?1 OR key_id = (SELECT id FROM keys WHERE external_id = ?2)`,
  ),
  removeKey: db.prepare(`DELETE FROM keys WHERE id = ?1 OR external_id = ?2`),
  addPreviousHash: db.prepare(`INSERT INTO former_hashes VALUES (?, ?, ?)`),
  findKey: db.prepare(`SELECT ${keyColumns} FROM keys WHERE id = ?`),
  findByExternalId: db.prepare(`SELECT ${keyColumns} FROM keys WHERE external_id = ?`),
  countKeys: db.prepare(`SELECT count(*) AS keys FROM keys`),
  previousHashesOf: db.prepare(
    `SELECT ${asText({ hash: 'hash', validUntil: 'valid_until' })} FROM former_hashes WHERE key_id = ? LIMIT ${maxFields}`,
  ),
  findByHash: db.prepare(
    `SELECT id FROM keys WHERE hash = ?1 UNION ALL SELECT key_id FROM former_hashes WHERE hash = ?1`,
  ),
  listKeys: db.prepare(`SELECT ${keyColumns} FROM keys ORDER BY keys.created_at, keys.id LIMIT ? OFFSET ?`),
  changeKey: db.prepare(
    `UPDATE keys SET tier = ?, own_limit = ?, revoked_at = ?, expires_at = ?, restrictions = ?, rates = ?
     WHERE id = ?`,
  ),
  shortenPreviousHashes: db.prepare(
    `UPDATE former_hashes SET valid_until = MIN(valid_until, ?2) WHERE key_id = ?1`,
  ),
  hashOf: db.prepare(`SELECT hash FROM keys WHERE id = ?`),
  replaceHash: db.prepare(`UPDATE keys SET hash = ? WHERE id = ?`),
  addSubscriber: db.prepare(`INSERT INTO subscribers VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`),
  repairSubscriber: db.prepare(`UPDATE subscribers SET created_at = ?, revoked_at = ? WHERE name = ?`),
  findSubscriber: db.prepare(
    `SELECT ${subscriberColumns} FROM subscribers WHERE id = ?1 OR name = ?1 ORDER BY subscribers.id = ?1 DESC`,
  ),
  subscriberId: db.prepare(`SELECT id FROM subscribers WHERE name = ?`),
  keysWithSubscribers: db.prepare(
    `SELECT keys.rowid AS place, ${asText({ id: 'keys.id', subscriberId: 'subscriber_id', subscriber: 'name' })}
     FROM keys LEFT JOIN subscribers ON subscribers.id = subscriber_id
     WHERE keys.rowid > ? ORDER BY keys.rowid LIMIT ${rowsPerPage}`,
  ),
  subscribers: db.prepare(
    `SELECT rowid AS place, ${subscriberColumns} FROM subscribers
     WHERE rowid > ? ORDER BY rowid LIMIT ${rowsPerPage}`,
  ),
  setSubscriberRevoked: db.prepare(`UPDATE subscribers SET revoked_at = ? WHERE id = ?`),
})

export const embeddedKeys = (parts: EmbeddedParts): KeyStore => {
  const { db, withRetry, withLongRetry, transaction, observer } = parts
  // Checks again inside the transaction, because another process may be opening the file too.
  if (formatOf(db) === 0 || missingIn(db).length > 0)
    inTransaction(db, () => {
      if (formatOf(db) === 0) db.exec(schema)
      for (const column of missingIn(db)) db.exec(`ALTER TABLE keys ADD COLUMN ${column} TEXT`)
    })
  const statements = statementsOn(db)
  const subscribers = embeddedSubscribers(parts, statements)
  const keyIn = (row: Row | undefined): KeyRecord | undefined => {
    if (!row) return undefined
    const previousHashes = statements.previousHashesOf.all(textIn(row.id)).map(textsIn)
    const { ownLimit: limit, ...fields } = textsIn(row)
    return keyRecordIn({ ...fields, limit, previousHashes }, observer)
  }
  const readKey = (id: string): KeyRecord | undefined => keyIn(statements.findKey.get(id))
  const readByExternalId = (externalId: string): KeyRecord | undefined =>
    keyIn(statements.findByExternalId.get(externalId))

  return {
    ...subscribers.store,
    addKey: record =>
      transaction(() => {
        const { id, hash, subscriberId, tier, limit, createdAt, revokedAt, expiresAt, externalId } = record
        const there = (externalId === null ? undefined : readByExternalId(externalId)) ?? readKey(id)
        if (there) return there
        // Replaces a damaged row.
        statements.removePreviousHashes.run(id, externalId)
        statements.removeKey.run(id, externalId)
        statements.addKey.run(
          ...([id, hash, subscriberId, tier, limit] as const),
          ...([createdAt, revokedAt, expiresAt, externalId] as const),
          ...([jsonIn(record.restrictions), jsonIn(record.rates)] as const),
        )
        for (const { hash, validUntil } of record.previousHashes)
          statements.addPreviousHash.run(hash, id, validUntil)
        return undefined
      }),
    findKey: id => withLongRetry(() => readKey(id)),
    findByExternalId: externalId => withLongRetry(() => readByExternalId(externalId)),
    // Requests wait for it.
    findByHash: hash =>
      withRetry(() => {
        const row = statements.findByHash.get(hash)
        const key = row && readKey(textIn(row.id))
        const validUntil = key && validUntilOf(key, hash)
        if (!key || validUntil === undefined) return undefined
        const subscriber = subscribers.read(key.subscriberId)
        return subscriber && { key, subscriber, validUntil }
      }),
    listKeys: (from = 0, count = -1) =>
      withLongRetry(() => statements.listKeys.all(count, from).flatMap(row => keyIn(row) ?? [])),
    keysWithSubscribers: async (from = 0) => {
      const { rows, next } = await pageOf(parts, statements.keysWithSubscribers, from)
      const keys = rows.map(({ id, subscriberId, subscriber }) => ({
        id: textIn(id),
        subscriberId: textIn(subscriberId),
        subscriber: nameIn(textIn(subscriber)),
      }))
      return { keys, next }
    },
    countKeys: () => withLongRetry(() => Number(statements.countKeys.get()?.keys)),
    changeKey: (id, change) =>
      transaction(() => {
        const key = readKey(id)
        if (!key) return false
        const { tier, limit, revokedAt, expiresAt, restrictions, rates } = { ...key, ...change }
        const terms = [jsonIn(restrictions), jsonIn(rates)] as const
        return statements.changeKey.run(tier, limit, revokedAt, expiresAt, ...terms, id).changes === 1
      }),
    replaceHash: (id, hash, previousValidUntil) =>
      transaction(() => {
        const previous = statements.hashOf.get(id)
        if (!previous) return false
        statements.shortenPreviousHashes.run(id, previousValidUntil)
        statements.addPreviousHash.run(textIn(previous.hash), id, previousValidUntil)
        statements.replaceHash.run(hash, id)
        return true
      }),
  }
}

const embeddedSubscribers = (parts: EmbeddedParts, statements: ReturnType<typeof statementsOn>) => {
  const { withLongRetry, observer } = parts
  const read = (idOrName: string): Subscriber | undefined => {
    const row = statements.findSubscriber.get(idOrName)
    return row && subscriberIn(textsIn(row), observer)
  }
  const store: SubscriberStore = {
    ensureSubscriber: subscriber =>
      withLongRetry(() => {
        const { id, name, createdAt, revokedAt } = subscriber
        statements.addSubscriber.run(id, name, createdAt, revokedAt)
        const there = read(name)
        if (there) return there
        // Repairs a damaged row, whose id the keys have.
        statements.repairSubscriber.run(createdAt, revokedAt, name)
        return read(name) ?? subscriber
      }),
    findSubscriber: idOrName => withLongRetry(() => read(idOrName)),
    findSubscriberId: name =>
      withLongRetry(() => {
        const row = statements.subscriberId.get(name)
        return row && textIn(row.id)
      }),
    listSubscribers: async () => {
      const all: Subscriber[] = []
      for (let from: number | null = 0; from !== null; await nextTurn()) {
        const { rows, next } = await pageOf(parts, statements.subscribers, from)
        all.push(...rows.flatMap(({ place: _, ...row }) => subscriberIn(textsIn(row), observer) ?? []))
        from = next
      }
      return all.sort(byCreation)
    },
    setSubscriberRevoked: (id, at) =>
      withLongRetry(() => statements.setSubscriberRevoked.run(at, id).changes === 1),
  }
  return { read, store }
}

/** Some rows of a table, in the order in which they were added: about oldest first. */
const pageOf = async (
  { withLongRetry }: EmbeddedParts,
  page: StatementSync,
  after: number,
): Promise<{ rows: Row[]; next: number | null }> => {
  const rows = await withLongRetry(() => page.all(after))
  return { rows, next: rows.length < rowsPerPage ? null : Number(rows.at(-1)?.place) }
}

const byCreation = (one: Subscriber, other: Subscriber): number =>
  one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1)

const jsonIn = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

type Row = Record<string, SQLOutputValue>

/** NULL is empty text, as an absent field in a Redis hash. */
const textIn = (value: SQLOutputValue | undefined): string => (value == null ? '' : String(value))
const textsIn = (row: Row): Record<string, string> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, textIn(value)]))
