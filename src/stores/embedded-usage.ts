// What keys used, counted in the embedded store: a row per key and day. What each instance has dealt of it is known to
// the connection alone: with it ends the only process that could say it again.

import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../clock.ts'
import { type Attempt, inTransaction } from './embedded-attempt.ts'
import { StoreError, type UsageStore } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS usage (
    key_id TEXT NOT NULL, day TEXT NOT NULL, used INTEGER NOT NULL, last_taken INTEGER NOT NULL,
    keep_until INTEGER NOT NULL, PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
`
// Nobody deals units of an earlier day any more.
const daysDealt = 3

/** `sweep` forgets what may be forgotten. */
export const embeddedUsage = (
  db: DatabaseSync,
  clock: Clock,
  attempt: Attempt,
): UsageStore & { sweepUsage(): void } => {
  db.exec(schema)
  const statements = {
    find: db.prepare(`SELECT used FROM usage WHERE key_id = ? AND day = ?`),
    // last_taken is of an earlier form of the file.
    put: db.prepare(
      `INSERT INTO usage VALUES (:key, :day, :used, 0, :keep) ON CONFLICT (key_id, day) DO UPDATE SET used = :used`,
    ),
    raise: db.prepare(
      `INSERT INTO usage VALUES (?, ?, ?, 0, ?)
       ON CONFLICT (key_id, day) DO UPDATE SET used = MAX(used, excluded.used)`,
    ),
    sweep: db.prepare(`DELETE FROM usage WHERE keep_until <= ?`),
  }
  const dealtOn = new Map<string, Map<string, number>>()
  const sequences = new Map<string, number>()

  const dealtOf = (day: string): Map<string, number> => {
    let dealt = dealtOn.get(day)
    if (!dealt) {
      dealt = new Map()
      dealtOn.set(day, dealt)
      if (dealtOn.size > daysDealt) dealtOn.delete([...dealtOn.keys()].sort()[0] ?? '')
    }
    return dealt
  }
  const usedOn = (keyId: string, day: string) => Number(statements.find.get(keyId, day)?.used ?? 0)

  return {
    sweepUsage: () => void statements.sweep.run(clock.now()),
    partitionOf: () => 0,
    take: ({ instance, sequence, takes }) =>
      attempt(() => {
        if ((sequences.get(instance) ?? 0) >= sequence) throw new StoreError('a later trip came first')
        // A command in another process can't come between the checks and the counts.
        const results = inTransaction(db, () =>
          takes.map(({ keyId, day, units, limit, dealt, keepUntil }) => {
            const before = usedOn(keyId, day)
            const mine = dealtOf(day).get(`${instance} ${keyId}`) ?? 0
            const corrected = Math.max(0, before + dealt - mine)
            const taken = Math.max(0, Math.min(units, limit - corrected))
            const used = corrected + taken
            if (used !== before) statements.put.run({ key: keyId, day, used, keep: keepUntil })
            return { taken, used, before }
          }),
        )
        sequences.set(instance, sequence)
        takes.forEach(({ keyId, day, dealt }, i) => {
          dealtOf(day).set(`${instance} ${keyId}`, dealt + (results[i]?.taken ?? 0))
        })
        return results
      }),
    usedOn: (keyId, days) => attempt(() => days.map(day => usedOn(keyId, day))),
    // One process, which hears itself.
    onUsed: () => () => {},
    time: () => attempt(() => clock.now()),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(() => {
        if (used > 0) statements.raise.run(keyId, day, used, keepUntil)
      }),
  }
}
