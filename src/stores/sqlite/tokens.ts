// The token buckets of keys in the embedded store, for several processes on one file: a row per bucket, changed under the write lock.
// A gateway that is alone keeps its buckets in memory and writes nothing here.

import { refilled, type TokenStore, tokensGranted } from '../token-bucket.ts'
import { type EmbeddedParts, inTransaction } from './attempt.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS tokens (
    key_id TEXT NOT NULL, name TEXT NOT NULL, held REAL NOT NULL, at REAL NOT NULL, full_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
  ) STRICT, WITHOUT ROWID;
`
// A bucket that is full needs no row.
const sweepEvery = 1_000

export const embeddedTokens = ({ db, clock, attempt }: EmbeddedParts): TokenStore => {
  db.exec(schema)
  const statements = {
    find: db.prepare('SELECT held, at FROM tokens WHERE key_id = ? AND name = ?'),
    put: db.prepare(
      `INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5)
       ON CONFLICT (key_id, name) DO UPDATE SET held = ?3, at = ?4, full_at = ?5`,
    ),
    sweep: db.prepare('DELETE FROM tokens WHERE full_at <= ?'),
  }
  let takes = 0
  return {
    takeTokens: request =>
      attempt(() =>
        inTransaction(db, () => {
          const { keyId, buckets } = request
          const now = clock.now()
          takes += 1
          if (takes % sweepEvery === 0) statements.sweep.run(now)
          const held = buckets.map(bucket => {
            const row = statements.find.get(keyId, bucket.name)
            const before = row ? refilled(bucket, Number(row.held), now - Number(row.at)) : bucket.capacity
            return Math.max(0, Math.min(bucket.capacity, before - bucket.spent))
          })
          const granted = tokensGranted(request, Math.min(...held))
          const left = held.map(tokens => tokens - granted)
          buckets.forEach(({ name, capacity, perMs }, i) => {
            const tokens = left[i] ?? 0
            statements.put.run(keyId, name, tokens, now, now + (capacity - tokens) / perMs)
          })
          return { granted, left }
        }),
      ),
  }
}
