// How keys were answered, counted in the embedded store: a row per key, day, endpoint and class of status.

import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../clock.ts'
import { type Attempt, inTransaction } from './embedded-attempt.ts'
import type { UsageDetailStore } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS usage_detail (
    key_id TEXT NOT NULL, day TEXT NOT NULL, endpoint TEXT NOT NULL, status_class TEXT NOT NULL,
    count INTEGER NOT NULL, keep_until INTEGER NOT NULL, PRIMARY KEY (key_id, day, endpoint, status_class)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS usage_detail_by_expiry ON usage_detail (keep_until);
`

export const embeddedUsageDetail = (db: DatabaseSync, clock: Clock, attempt: Attempt): UsageDetailStore => {
  db.exec(schema)
  const statements = {
    add: db.prepare(
      `INSERT INTO usage_detail VALUES (:keyId, :day, :endpoint, :statusClass, :count, :keepUntil)
       ON CONFLICT DO UPDATE SET count = count + excluded.count, keep_until = excluded.keep_until`,
    ),
    on: db.prepare(`SELECT endpoint, status_class, count FROM usage_detail WHERE key_id = ? AND day = ?`),
    sweep: db.prepare(`DELETE FROM usage_detail WHERE keep_until <= ?`),
  }
  return {
    addDetail: entries =>
      attempt(() =>
        inTransaction(db, () => {
          statements.sweep.run(clock.now())
          for (const entry of entries) statements.add.run(entry)
        }),
      ),
    detailOn: (keyId, day) =>
      attempt(() =>
        statements.on.all(keyId, day).map(row => ({
          endpoint: String(row.endpoint),
          statusClass: String(row.status_class),
          count: Number(row.count),
        })),
      ),
  }
}
