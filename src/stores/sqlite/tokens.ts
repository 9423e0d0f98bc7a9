// The token buckets of keys in the embedded store: a row per bucket, read and changed in the transaction of the batch that counts. A
// bucket that is full needs no row.

import { refilled, type TokenEntry } from '../token-bucket.ts'
import type { EmbeddedParts } from './attempt.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS tokens (
    key_id TEXT NOT NULL, name TEXT NOT NULL, held REAL NOT NULL, at REAL NOT NULL, full_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
  ) STRICT, WITHOUT ROWID;
`
const sweepEvery = 1_000

export const embeddedTokens = ({ db, clock }: Pick<EmbeddedParts, 'db' | 'clock'>) => {
  db.exec(schema)
  const statements = {
    find: db.prepare('SELECT held, at FROM tokens WHERE key_id = ? AND name = ?'),
    put: db.prepare(
      `INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5)
       ON CONFLICT (key_id, name) DO UPDATE SET held = ?3, at = ?4, full_at = ?5`,
    ),
    sweep: db.prepare('DELETE FROM tokens WHERE full_at <= ?'),
  }
  let writes = 0
  return {
    /** What each bucket of a key holds now, less what was spent without the store. */
    heldBy: (keyId: string, buckets: readonly TokenEntry[]): number[] =>
      buckets.map(bucket => {
        const row = statements.find.get(keyId, bucket.name)
        const elapsedMs = clock.now() - Number(row?.at)
        const held = row ? refilled(bucket, Number(row.held), elapsedMs) : bucket.capacity
        return Math.max(0, Math.min(bucket.capacity, held - bucket.spent))
      }),
    put: (keyId: string, buckets: readonly TokenEntry[], left: readonly number[]): void => {
      const now = clock.now()
      writes += 1
      if (writes % sweepEvery === 0) statements.sweep.run(now)
      buckets.forEach(({ name, capacity, perMs }, i) => {
        const tokens = left[i] ?? 0
        statements.put.run(keyId, name, tokens, now, now + (capacity - tokens) / perMs)
      })
    },
  }
}
