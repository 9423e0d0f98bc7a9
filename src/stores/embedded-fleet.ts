// What a process leaves for its next life and for the commands beside it, in the embedded store: what it was asked for
// lately, and notices in the order they were given. There is one instance.

import type { DatabaseSync } from 'node:sqlite'
import { type Attempt, inTransaction } from './embedded-attempt.ts'
import type { FleetStore } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS wanted (
    topic TEXT NOT NULL, name TEXT NOT NULL, asked_at INTEGER NOT NULL, PRIMARY KEY (topic, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS notices (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, text TEXT NOT NULL, keep_until INTEGER NOT NULL
  ) STRICT;
`

export const embeddedFleet = (db: DatabaseSync, attempt: Attempt): FleetStore => {
  db.exec(schema)
  const statements = {
    ask: db.prepare(
      `INSERT INTO wanted VALUES (?, ?, ?) ON CONFLICT (topic, name) DO UPDATE SET asked_at = excluded.asked_at`,
    ),
    forget: db.prepare(`DELETE FROM wanted WHERE topic = ? AND asked_at <= ?`),
    count: db.prepare(`SELECT count(*) AS wanted FROM wanted WHERE topic = ?`),
    wanted: db.prepare(`SELECT name FROM wanted WHERE topic = ? AND asked_at >= ? ORDER BY asked_at DESC`),
    append: db.prepare(`INSERT INTO notices (topic, text, keep_until) VALUES (?, ?, ?)`),
    after: db.prepare(`SELECT number, text FROM notices WHERE topic = ? AND number > ? ORDER BY number`),
    has: db.prepare(`SELECT 1 FROM notices WHERE topic = ? AND number = ?`),
    sweep: db.prepare(`DELETE FROM notices WHERE keep_until <= ?`),
  }
  return {
    pulse: ({ topic, asked, wantedForMs, now }) =>
      attempt(() => {
        inTransaction(db, () => {
          for (const name of asked) statements.ask.run(topic, name, now)
          statements.forget.run(topic, now - wantedForMs)
          statements.sweep.run(now)
        })
        return { instances: 1, wanted: Number(statements.count.get(topic)?.wanted) }
      }),
    wanted: (topic, since) => attempt(() => statements.wanted.all(topic, since).map(row => String(row.name))),
    appendNotice: (topic, text, keepUntil) =>
      attempt(() => Number(statements.append.run(topic, text, keepUntil).lastInsertRowid)),
    noticesAfter: (topic, number) =>
      attempt(() => ({
        notices: statements.after
          .all(topic, number)
          .map(row => ({ number: Number(row.number), text: String(row.text) })),
        complete: number === 0 || statements.has.get(topic, number) !== undefined,
      })),
  }
}
