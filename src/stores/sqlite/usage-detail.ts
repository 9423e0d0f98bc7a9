// Usage detail in the embedded store: a row per key, day, endpoint and status class.

import { answerCountOf, forMessage, maxFields, refuseRecord } from '../records.ts'
import type { UsageDetailStore } from '../store.ts'
import { type EmbeddedParts, wholeSql } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS usage_detail (
    key_id TEXT NOT NULL, day TEXT NOT NULL, endpoint TEXT NOT NULL, status_class TEXT NOT NULL,
    count INTEGER NOT NULL, keep_until INTEGER NOT NULL, PRIMARY KEY (key_id, day, endpoint, status_class)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS usage_detail_by_expiry ON usage_detail (keep_until);
`

// More than a write adds, so that none stay. They take some 2 ms; all rows of a day expire at one instant.
const sweptPerWrite = 1_000

export const embeddedUsageDetail = ({
  db,
  clock,
  withRetry,
  transaction,
  observer,
}: EmbeddedParts): UsageDetailStore => {
  db.exec(schema)
  const statements = {
    add: db.prepare(
      `INSERT INTO usage_detail VALUES (:keyId, :day, :endpoint, :statusClass, :count, :keepUntil)
       ON CONFLICT DO UPDATE
         SET count = COALESCE(${wholeSql('count')}, 0) + excluded.count, keep_until = excluded.keep_until`,
    ),
    on: db.prepare(
      `SELECT substr(endpoint, 1, 99) AS endpoint, substr(status_class, 1, 99) AS status_class,
         CAST(count AS TEXT) AS count FROM usage_detail WHERE key_id = ? AND day = ? LIMIT ${maxFields}`,
    ),
    sweep: db.prepare(
      `DELETE FROM usage_detail WHERE (key_id, day, endpoint, status_class) IN (
         SELECT key_id, day, endpoint, status_class FROM usage_detail WHERE keep_until <= ? LIMIT ${sweptPerWrite})`,
    ),
  }
  return {
    addDetail: entries =>
      transaction(() => {
        statements.sweep.run(clock.now())
        for (const entry of entries) statements.add.run(entry)
      }),
    detailOn: (keyId, day) =>
      withRetry(() =>
        statements.on.all(keyId, day).flatMap(({ endpoint, status_class, count }) => {
          const counted = answerCountOf(String(status_class), String(endpoint), String(count))
          if (counted) return [counted]
          const fault = `its count of ${day} is "${forMessage(String(count))}"`
          refuseRecord(observer, 'usage_detail', keyId, fault)
          return []
        }),
      ),
  }
}
