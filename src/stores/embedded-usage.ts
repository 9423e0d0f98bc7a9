// What keys used, counted in the embedded store: a row per key and day.

import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../clock.ts'
import type { UsageStore } from './store.ts'

type Attempt = <Value>(step: () => Value) => Promise<Value>

const schema = `
  CREATE TABLE IF NOT EXISTS usage (
    key_id TEXT NOT NULL, day TEXT NOT NULL, used INTEGER NOT NULL, last_taken INTEGER NOT NULL,
    keep_until INTEGER NOT NULL, PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
`

/** `sweep` forgets what may be forgotten. */
export const embeddedUsage = (
  db: DatabaseSync,
  clock: Clock,
  attempt: Attempt,
): UsageStore & { sweepUsage(): void } => {
  db.exec(schema)
  const statements = {
    // One statement, so that a command in another process can't come between the check and the count.
    take: db.prepare(
      `INSERT INTO usage VALUES (:key, :day, MIN(:units, :limit), MIN(:units, :limit), :keep)
       ON CONFLICT (key_id, day) DO UPDATE SET
         last_taken = MAX(0, MIN(:units, :limit - used)), used = used + MAX(0, MIN(:units, :limit - used))
       RETURNING last_taken, used`,
    ),
    usedOn: db.prepare(`SELECT used FROM usage WHERE key_id = ? AND day = ?`),
    raise: db.prepare(
      `INSERT INTO usage VALUES (?, ?, ?, 0, ?)
       ON CONFLICT (key_id, day) DO UPDATE SET used = MAX(used, excluded.used)`,
    ),
    sweep: db.prepare(`DELETE FROM usage WHERE keep_until <= ?`),
  }
  return {
    sweepUsage: () => void statements.sweep.run(clock.now()),
    take: ({ keyId, day, units, limit, keepUntil }) =>
      attempt(() => {
        // All rows and not the first: only a statement that ran to its end lets SQLite put the log back into the file.
        const [row] = statements.take.all({ key: keyId, day, units, limit, keep: keepUntil })
        return { taken: Number(row?.last_taken), used: Number(row?.used) }
      }),
    usedOn: (keyId, days) =>
      attempt(() => days.map(day => Number(statements.usedOn.get(keyId, day)?.used ?? 0))),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(() => {
        if (used > 0) statements.raise.run(keyId, day, used, keepUntil)
      }),
  }
}
