// What keys used, counted in the embedded store: a row per key and day. What each instance has dealt of it is known to
// the connection alone: with it ends the only process that could say it again. A count that can't be begins again at what
// this process knows to be dealt. While the file can't be written, counts are kept in the reserve.

import type { DatabaseSync } from 'node:sqlite'
import { type EmbeddedParts, inTransaction, wholeSql } from './embedded-attempt.ts'
import type { ReservedCount } from './embedded-reserve.ts'
import { createReservedCounts } from './embedded-reserved-counts.ts'
import { type MendedQuota, mostCounted, shown } from './records.ts'
import { OvertakenError, type Taken, type UsageStore } from './store.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS usage (
    key_id TEXT NOT NULL, day TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
`
// Of an earlier day an instance's own word is taken for what was counted of it.
const daysDealt = 3

// What the first version wrote there is of no use any more.
const dropFormerColumn = (db: DatabaseSync): void => {
  const isThere = () =>
    db.prepare(`SELECT 1 FROM pragma_table_info('usage') WHERE name = 'last_taken'`).get() !== undefined
  if (!isThere()) return
  // Looked at again inside the transaction, because another process may be opening the file too.
  inTransaction(db, () => {
    if (isThere()) db.exec('ALTER TABLE usage DROP COLUMN last_taken')
  })
}

/** `sweepUsage` forgets what may be forgotten, `closeUsage` comes before the end of the connection. */
export const embeddedUsage = ({
  db,
  path,
  clock,
  attempt,
  observer,
}: EmbeddedParts & { readonly path: string }): UsageStore & { sweepUsage(): void; closeUsage(): void } => {
  db.exec(schema)
  dropFormerColumn(db)
  const statements = {
    find: db.prepare(`SELECT ${wholeSql('used')} FROM usage WHERE key_id = ? AND day = ?`),
    put: db.prepare(
      `INSERT INTO usage VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key_id, day) DO UPDATE SET used = ?3`,
    ),
    raise: db.prepare(
      `INSERT INTO usage VALUES (?, ?, ?, ?)
       ON CONFLICT (key_id, day) DO UPDATE SET used = CASE
         WHEN used BETWEEN 0 AND ${mostCounted} THEN MAX(used, excluded.used) ELSE excluded.used END`,
    ),
    sweep: db.prepare(`DELETE FROM usage WHERE keep_until <= ?`),
  }
  statements.find.setReturnArrays(true)
  // By instance, day and key.
  const dealtBy = new Map<string, Map<string, Map<string, number>>>()
  const sequences = new Map<string, number>()

  const dealtOf = (instance: string, day: string): Map<string, number> => {
    const days = dealtBy.get(instance) ?? new Map<string, Map<string, number>>()
    const known = days.get(day)
    if (known) return known
    const dealt = new Map<string, number>()
    dealtBy.set(instance, days.set(day, dealt))
    if (days.size > daysDealt) days.delete([...days.keys()].sort()[0] ?? '')
    return dealt
  }
  /** Undefined where the count can't be one. */
  const countInFile = (keyId: string, day: string): number | undefined => {
    // Rows are arrays here, which the types do not say.
    const row = statements.find.get(keyId, day) as (number | null)[] | undefined
    return row ? (row[0] ?? undefined) : 0
  }
  const reserved = createReservedCounts({
    path,
    missing: counts =>
      counts.filter(
        ({ keyId, day, used, keepUntil }) => keepUntil > clock.now() && (countInFile(keyId, day) ?? 0) < used,
      ),
    raise: counts =>
      inTransaction(db, () => {
        for (const { keyId, day, used, keepUntil } of counts)
          statements.raise.run(keyId, day, used, keepUntil)
      }),
    observer,
  })
  const countOf = (keyId: string, day: string): number | undefined =>
    reserved.usedOn(keyId, day) ?? countInFile(keyId, day)
  const putRow = ({ keyId, day, used, keepUntil }: ReservedCount): void =>
    void statements.put.run(keyId, day, used, keepUntil)
  const knownOf = (keyId: string, day: string): number =>
    [...dealtBy.values()].reduce((sum, days) => sum + (days.get(day)?.get(keyId) ?? 0), 0)

  return {
    closeUsage: reserved.close,
    sweepUsage: () => void statements.sweep.run(clock.now()),
    partitionOf: () => 0,
    take: ({ instance, sequence, takes }) =>
      attempt(() => {
        const last = sequences.get(instance) ?? 0
        if (last >= sequence) throw new OvertakenError(last)
        let mended: MendedQuota[] = []
        const count = (put: (count: ReservedCount) => void): Taken[] => {
          mended = []
          return takes.map(({ keyId, day, units, limit, dealt, confirmed, keepUntil }) => {
            const found = countOf(keyId, day)
            const before = found ?? knownOf(keyId, day)
            if (found === undefined) mended.push({ keyId, day, record: 'day', used: before })
            // What is not in the count any more is said again.
            const mine = Math.min(before, dealtOf(instance, day).get(keyId) ?? confirmed)
            const corrected = Math.max(0, before + dealt - mine)
            const taken = Math.max(0, Math.min(units, limit - corrected))
            const used = corrected + taken
            if (used !== found) put({ keyId, day, used, keepUntil })
            return { taken, used, before }
          })
        }
        const results = reserved.count(
          // A command in another process can't come between the checks and the counts.
          () => inTransaction(db, () => count(putRow)),
          count,
        )
        sequences.set(instance, sequence)
        mended.forEach(observer.quotaMended)
        takes.forEach(({ keyId, day, dealt }, i) => {
          dealtOf(instance, day).set(keyId, dealt + (results[i]?.taken ?? 0))
        })
        return results
      }),
    usedOn: (keyId, days) =>
      attempt(() =>
        days.map(day => {
          const count = countOf(keyId, day)
          if (count !== undefined) return count
          const fault = `its count of ${day} is no whole number`
          observer.recordRefused({ record: 'usage', name: shown(keyId), fault })
          return knownOf(keyId, day)
        }),
      ),
    // One process, which hears itself.
    onUsed: () => () => {},
    time: () => attempt(() => clock.now()),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(() => {
        if (used > 0) statements.raise.run(keyId, day, used, keepUntil)
      }),
  }
}
