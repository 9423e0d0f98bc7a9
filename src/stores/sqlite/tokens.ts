// The token buckets of keys in the embedded store: a row per bucket, read and changed in the transaction of the batch that counts. A
// bucket that is full needs no row.

import type { UsageRun } from '../store.ts'
import { refilled, type TokenEntry, type TokenGrant } from '../token-bucket.ts'
import type { EmbeddedParts } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS tokens (
    key_id TEXT NOT NULL, name TEXT NOT NULL, held REAL NOT NULL, at REAL NOT NULL, full_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
  ) STRICT, WITHOUT ROWID;
`
// In writes of buckets, of which a key has one or two.
const sweepEvery = 2_000

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
  /** What a bucket of a key holds now, less what was spent without the store, and whether the clock was set back since it was written. */
  const read = (keyId: string, bucket: TokenEntry) => {
    const row = statements.find.get(keyId, bucket.name)
    const elapsedMs = clock.now() - Number(row?.at)
    const held = row ? refilled(bucket, Number(row.held), elapsedMs) : bucket.capacity
    return { tokens: Math.max(0, Math.min(bucket.capacity, held - bucket.spent)), isAhead: elapsedMs < 0 }
  }
  const put = (keyId: string, { name, capacity, perMs }: TokenEntry, tokens: number): void => {
    const now = clock.now()
    writes += 1
    if (writes % sweepEvery === 0) statements.sweep.run(now)
    statements.put.run(keyId, name, tokens, now, now + (capacity - tokens) / perMs)
  }
  /** Takes a token of each bucket for every request, as far as there are any. */
  return (keyId: string, buckets: readonly TokenEntry[], runs: readonly UsageRun[] = []): TokenGrant => {
    const held = buckets.map(bucket => read(keyId, bucket))
    const wanted = runs.reduce((sum, { requests }) => sum + requests, 0)
    const taken = Math.min(wanted, Math.floor(Math.min(...held.map(({ tokens }) => tokens))))
    const left = held.map(({ tokens }) => tokens - taken)
    // A bucket that is ahead of the clock would not refill until then.
    if (taken > 0 || buckets.some(({ spent }) => spent > 0) || held.some(({ isAhead }) => isAhead))
      for (const [i, bucket] of buckets.entries()) put(keyId, bucket, left[i] ?? 0)
    return { taken, left }
  }
}
