// The fleet state of the embedded store: names in demand, for the next start; change records, for commands that run beside the
// gateway; and the processes of this machine that share the file.

import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { clockToleranceMs } from '../../common/clock.ts'
import {
  checkChangeRecord,
  longestReport,
  maxChangeRecords,
  maxCounted,
  maxInstances,
  maxWanted,
  maxWantedRead,
} from '../records.ts'
import type { FleetStore } from '../store.ts'
import { type EmbeddedParts, inTransaction } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS wanted (
    topic TEXT NOT NULL, name TEXT NOT NULL, asked_at INTEGER NOT NULL, PRIMARY KEY (topic, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS notices (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, text TEXT NOT NULL, keep_until INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS reports (instance TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

// Instances are kept as names are; no topic of demand has this name.
const instancesTopic = 'instances'
// They take some ms.
const namesPerTurn = 2_000

const statementsOn = (db: DatabaseSync) => ({
  upsert: db.prepare(
    `INSERT INTO wanted VALUES (?, ?, ?) ON CONFLICT (topic, name) DO UPDATE SET asked_at = excluded.asked_at`,
  ),
  forget: db.prepare(`DELETE FROM wanted WHERE topic = ? AND asked_at <= ?`),
  forgetName: db.prepare(`DELETE FROM wanted WHERE topic = ? AND name = ?`),
  // Most of them are this gateway's own, from before the clock of the machine was set back.
  setBack: db.prepare(
    `UPDATE wanted SET asked_at = ?2 WHERE topic = ?1 AND asked_at > ?2 + ${clockToleranceMs}`,
  ),
  forgetSurplus: db.prepare(
    `DELETE FROM wanted WHERE topic = ?1 AND name IN (
       SELECT name FROM wanted WHERE topic = ?1 ORDER BY asked_at DESC LIMIT -1 OFFSET ${maxWanted})`,
  ),
  count: db.prepare(`SELECT count(*) AS wanted FROM wanted WHERE topic = ?`),
  wanted: db.prepare(
    `SELECT name FROM wanted WHERE topic = ? AND asked_at >= ? ORDER BY asked_at DESC LIMIT ${maxWantedRead}`,
  ),
  report: db.prepare(
    `INSERT INTO reports VALUES (?, ?) ON CONFLICT (instance) DO UPDATE SET report = excluded.report`,
  ),
  forgetReports: db.prepare(
    `DELETE FROM reports WHERE instance NOT IN (SELECT name FROM wanted WHERE topic = '${instancesTopic}')`,
  ),
  instances: db.prepare(
    `SELECT name, asked_at, CASE WHEN octet_length(report) <= ${longestReport} THEN report END AS report
     FROM wanted LEFT JOIN reports ON instance = name
     WHERE topic = '${instancesTopic}' AND asked_at >= ? ORDER BY asked_at DESC LIMIT ${maxInstances}`,
  ),
  append: db.prepare(
    `INSERT INTO notices (number, topic, text, keep_until) VALUES (
       (SELECT ?1 + 1 WHERE ?1 > (SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'notices')),
       ?2, ?3, ?4)`,
  ),
  // As many are kept as in Redis.
  shorten: db.prepare(
    `DELETE FROM notices WHERE topic = ?1 AND number <=
       (SELECT number FROM notices WHERE topic = ?1 ORDER BY number DESC LIMIT 1 OFFSET ${maxChangeRecords})`,
  ),
  after: db.prepare(
    `SELECT number, text FROM notices WHERE topic = ? AND number > ?
     ORDER BY number DESC LIMIT ${maxChangeRecords}`,
  ),
  has: db.prepare(`SELECT 1 FROM notices WHERE topic = ? AND number = ?`),
  sweep: db.prepare(`DELETE FROM notices WHERE keep_until <= ?`),
})

export const embeddedFleet = ({
  db,
  clock,
  withRetry,
  withLongRetry,
  transaction,
}: EmbeddedParts): FleetStore => {
  db.exec(schema)
  const statements = statementsOn(db)
  const countOf = (topic: string): number => Number(statements.count.get(topic)?.wanted)
  return {
    heartbeat: async ({ instance, aliveForMs, topic, requested, wantedForMs, now, report }) => {
      const beAlive = (): void => {
        statements.forget.run(instancesTopic, now - aliveForMs)
        statements.upsert.run(instancesTopic, instance, now)
        statements.setBack.run(instancesTopic, now)
        statements.report.run(instance, report)
        statements.forgetReports.run()
      }
      const forgetOld = (): void => {
        statements.forget.run(topic, now - wantedForMs)
        statements.setBack.run(topic, now)
        if (countOf(topic) > maxWanted) statements.forgetSurplus.run(topic)
        statements.sweep.run(now)
      }
      for (let from = 0; ; ) {
        const part = requested.slice(from, from + namesPerTurn)
        const isLast = from + part.length === requested.length
        await withRetry(() =>
          inTransaction(db, () => {
            // In the turn of the call: a heartbeat that comes later, as the last one of an instance, is written later.
            if (from === 0) beAlive()
            for (const name of part) statements.upsert.run(topic, name, now)
            if (isLast) forgetOld()
          }),
        )
        if (isLast) break
        from += part.length
        await nextTurn()
      }
      return withRetry(() => {
        const instances = Math.max(1, countOf(instancesTopic))
        return { instances, variants: 1, wanted: countOf(topic) }
      })
    },
    leave: instance => withLongRetry(() => void statements.forgetName.run(instancesTopic, instance)),
    aliveInstances: aliveForMs =>
      withRetry(() => {
        const now = clock.now()
        return statements.instances.all(now - aliveForMs).map(({ name, asked_at: at, report }) => ({
          id: String(name),
          silentForMs: Math.max(0, now - Number(at)),
          report: report === null ? undefined : String(report),
        }))
      }),
    wanted: (topic, since) =>
      withRetry(() => statements.wanted.all(topic, since).map(row => String(row.name))),
    appendChangeRecord: (topic, text, keepUntil, above = 0) =>
      transaction(() => {
        checkChangeRecord(text)
        const number = Math.min(above, maxCounted - 1)
        const { lastInsertRowid } = statements.append.run(number, topic, text, keepUntil)
        statements.shorten.run(topic)
        return Number(lastInsertRowid)
      }),
    changeRecordsAfter: (topic, number) =>
      withRetry(() => {
        const records = statements.after
          .all(topic, number)
          .map(row => ({ number: Number(row.number), text: String(row.text) }))
          .reverse()
        const isKnown = number === 0 || statements.has.get(topic, number) !== undefined
        return { records, complete: isKnown && records.length < maxChangeRecords }
      }),
  }
}
