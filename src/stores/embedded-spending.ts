// What was spent at the provider, in the embedded store: one count per window and one instant until which the provider
// is closed. Every step is one write transaction, so that a command in another process can't come in between. What is
// spent on, and why, is the caller's.

import type { DatabaseSync } from 'node:sqlite'
import { type Attempt, inTransaction } from './embedded-attempt.ts'
import type { SpendingStore } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS spending (
    provider TEXT NOT NULL, name TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (provider, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS closures (provider TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

/** The spending of a store on this database. @param attempt turns failures into StoreError */
export const embeddedSpending = (db: DatabaseSync, attempt: Attempt): SpendingStore => {
  db.exec(schema)
  const statements = {
    used: db.prepare(`SELECT used FROM spending WHERE provider = ? AND name = ?`),
    add: db.prepare(
      `INSERT INTO spending VALUES (:provider, :name, MAX(0, :least + :by), :keep)
       ON CONFLICT (provider, name) DO UPDATE SET used = MAX(0, MAX(used, :least) + :by), keep_until = :keep`,
    ),
    // A few dozen rows at the most, so that every reservation may look through them all.
    sweep: db.prepare(`DELETE FROM spending WHERE keep_until <= ?`),
    closedUntil: db.prepare(`SELECT until FROM closures WHERE provider = ?`),
    close: db.prepare(
      `INSERT INTO closures VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET until = MAX(until, excluded.until)`,
    ),
  }
  const usedIn = (provider: string, name: string) => Number(statements.used.get(provider, name)?.used ?? 0)
  const closedUntil = (provider: string): number | null => {
    const row = statements.closedUntil.get(provider)
    return row ? Number(row.until) : null
  }
  const inOne = <Value>(step: () => Value): Promise<Value> => attempt(() => inTransaction(db, step))

  return {
    reserve: ({ provider, windows, wanted, unit, now }) =>
      inOne(() => {
        statements.sweep.run(now)
        const used = windows.map(({ name }) => usedIn(provider, name))
        const closed = closedUntil(provider)
        if (closed !== null && closed > now) return { granted: 0, closedUntil: closed, used }
        const room = Math.min(wanted, ...windows.map(({ limit }, i) => limit - (used[i] ?? 0)))
        const granted = Math.max(0, Math.floor(room / unit)) * unit
        if (granted > 0)
          for (const { name, keepUntil } of windows)
            statements.add.run({ provider, name, by: granted, least: 0, keep: keepUntil })
        return { granted, closedUntil: null, used: used.map(amount => amount + granted) }
      }),
    settle: ({ provider, changes }) =>
      inOne(() => {
        for (const { name, by, atLeast = 0, keepUntil } of changes)
          statements.add.run({ provider, name, by, least: atLeast, keep: keepUntil })
      }),
    closeUntil: (provider, until) =>
      attempt(() => {
        statements.close.run(provider, until)
      }),
    spending: (provider, names) =>
      attempt(() => ({
        used: names.map(name => usedIn(provider, name)),
        closedUntil: closedUntil(provider),
      })),
  }
}
