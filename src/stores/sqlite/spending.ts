// The spending at the provider, in the embedded store. Every step is one write transaction, so that a command in another process can't
// interleave.

import type { DatabaseSync } from 'node:sqlite'
import { clockToleranceMs } from '../../common/clock.ts'
import { safeText } from '../../common/outside-text.ts'
import { roomOf } from '../fair-share.ts'
import { longestClosureMs, longestReason } from '../records.ts'
import type { Closure, SpendingStore, SpendingWindow } from '../spending-store.ts'
import { type EmbeddedParts, inTransaction, wholeSql } from './retry.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS spent (
    provider TEXT NOT NULL, name TEXT NOT NULL, charged INTEGER NOT NULL, refunded INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (provider, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS spent_by_consumer (
    provider TEXT NOT NULL, name TEXT NOT NULL, consumer TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (provider, name, consumer)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS spent_by_consumer_until ON spent_by_consumer (keep_until);
  CREATE TABLE IF NOT EXISTS closure (
    provider TEXT PRIMARY KEY, until INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, reopened INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`

const statementsOn = (db: DatabaseSync) => ({
  // A few dozen rows at most, so that every step may scan them all.
  sweep: db.prepare(`DELETE FROM spent WHERE keep_until <= ?`),
  sweepBy: db.prepare(`DELETE FROM spent_by_consumer WHERE keep_until <= ?`),
  spent: db.prepare(
    `SELECT ${wholeSql('charged')} AS charged, ${wholeSql('refunded')} AS refunded FROM spent WHERE provider = ? AND name = ?`,
  ),
  put: db.prepare(
    `INSERT INTO spent VALUES (:provider, :name, :charged, :refunded, :keep)
     ON CONFLICT (provider, name) DO UPDATE SET charged = :charged, refunded = :refunded, keep_until = :keep`,
  ),
  usedBy: db.prepare(
    `SELECT ${wholeSql('used')} AS used FROM spent_by_consumer WHERE provider = ? AND name = ? AND consumer = ?`,
  ),
  putBy: db.prepare(
    `INSERT INTO spent_by_consumer VALUES (:provider, :name, :consumer, :used, :keep)
     ON CONFLICT (provider, name, consumer) DO UPDATE SET used = :used, keep_until = :keep`,
  ),
  hasOther: db.prepare(
    `SELECT 1 FROM spent_by_consumer WHERE provider = ? AND name = ? AND consumer <> ? LIMIT 1`,
  ),
  closure: db.prepare(
    `SELECT ${wholeSql('until')} AS until, ${wholeSql('at')} AS at, reason, ${wholeSql('reopened')} AS reopened
     FROM closure WHERE provider = ?`,
  ),
  putClosure: db.prepare(
    `INSERT INTO closure VALUES (:provider, :until, :at, :reason, :reopened) ON CONFLICT (provider)
     DO UPDATE SET until = :until, at = :at, reason = :reason, reopened = :reopened`,
  ),
})

/** The closures of providers, each with the last reopening. */
const closuresOn = (statements: ReturnType<typeof statementsOn>) => {
  /** The closure in force and the last reopening, without impossible ones. */
  const inForce = (provider: string, now: number): { closure: Closure | null; reopenedAt: number } => {
    const row = statements.closure.get(provider)
    const [until, at, reopened] = [Number(row?.until ?? 0), Number(row?.at ?? 0), Number(row?.reopened ?? 0)]
    const isInForce = until > now && until <= now + longestClosureMs && at <= now + clockToleranceMs
    const isPossible = reopened <= now + longestClosureMs
    return {
      closure: isInForce ? { until, at, reason: safeText(String(row?.reason), longestReason) } : null,
      reopenedAt: isPossible ? reopened : 0,
    }
  }
  const put = (provider: string, closure: Closure | null, reopened: number): void => {
    statements.putClosure.run({ provider, until: 0, at: 0, reason: '', ...closure, reopened })
  }
  /** Joins the closure in force with the one that the caller knows. */
  const join = (provider: string, given: Closure | null, known: number | null, now: number) => {
    let { closure, reopenedAt } = inForce(provider, now)
    const isOutdated = known !== null && known < reopenedAt
    const isLost = known !== null && known > reopenedAt
    if (isLost) {
      closure = null
      reopenedAt = known
    }
    const isLonger = !isOutdated && given !== null && given.until > (closure?.until ?? 0)
    if (isLonger) closure = { ...given, reason: safeText(given.reason, longestReason) }
    if (isLost || isLonger) put(provider, closure, reopenedAt)
    return { closure, reopenedAt }
  }
  return { inForce, put, join }
}

export const embeddedSpending = ({ db, withRetry, transaction }: EmbeddedParts): SpendingStore => {
  db.exec(schema)
  const statements = statementsOn(db)
  const closures = closuresOn(statements)
  const usedBy = (provider: string, name: string, consumer: string): number | undefined =>
    (statements.usedBy.get(provider, name, consumer)?.used ?? undefined) as number | undefined

  return {
    spend: ({ provider, windows, wanted, claims, returns, unit, now, closure: given, reopenedAt: known }) =>
      withRetry(() =>
        inTransaction(db, () => {
          statements.sweep.run(now)
          statements.sweepBy.run(now)
          const { closure, reopenedAt } = closures.join(provider, given, known, now)
          const putBy = ({ name, keepUntil }: SpendingWindow, consumer: string, used: number) =>
            statements.putBy.run({ provider, name, consumer, used, keep: keepUntil })
          const spent = windows.map(window => {
            const { name, known: mine, added } = window
            const row = statements.spent.get(provider, name)
            const [charged, refunded] = [Number(row?.charged ?? 0), Number(row?.refunded ?? 0)]
            return {
              window,
              before: charged + refunded,
              charged: Math.max(charged, mine.charged) + added.charged,
              refunded: Math.max(refunded, mine.refunded) + added.refunded,
            }
          })
          for (const { consumer, window: i, by } of returns) {
            const { [i]: window } = windows
            const before = window && usedBy(provider, window.name, consumer)
            // A consumer's count that was swept is not restored.
            if (window && before !== undefined) putBy(window, consumer, Math.max(0, before - by))
          }
          const usedIn = ({ charged, refunded }: (typeof spent)[number]): number =>
            Math.max(0, charged - refunded)
          const grantOf = (amount: number, rooms: readonly number[]): number => {
            const granted = closure ? 0 : Math.max(0, Math.floor(Math.min(amount, ...rooms) / unit)) * unit
            for (const each of spent) if (each.window.limit !== null) each.charged += granted
            return granted
          }
          const roomsFor = (consumer?: string): number[] =>
            spent.map(each => {
              const { name, limit, shares } = each.window
              if (limit === null) return Number.POSITIVE_INFINITY
              const use = { limit, used: usedIn(each), usedBy: 0, isAlone: false }
              if (consumer === undefined) return roomOf(use, undefined, unit)
              const isAlone = statements.hasOther.get(provider, name, consumer) === undefined
              const used = usedBy(provider, name, consumer) ?? 0
              return roomOf({ ...use, usedBy: used, isAlone }, shares, unit)
            })
          const forNobody = grantOf(wanted, roomsFor())
          // A consumer that wants nothing now counts as present: the others share with it.
          if (!closure)
            for (const { consumer } of claims)
              for (const window of windows)
                if (window.limit !== null && usedBy(provider, window.name, consumer) === undefined)
                  putBy(window, consumer, 0)
          const granted = claims.map(({ consumer, wanted: amount }) => {
            const rooms = closure ? [] : roomsFor(consumer)
            const part = grantOf(amount, rooms)
            if (part > 0)
              for (const window of windows)
                if (window.limit !== null)
                  putBy(window, consumer, (usedBy(provider, window.name, consumer) ?? 0) + part)
            return { granted: part, heldIn: rooms.flatMap((room, i) => (room - part < unit ? [i] : [])) }
          })
          // Neither falls, so their sum shows whether there is something to write.
          for (const { window, before, charged, refunded } of spent)
            if (charged + refunded > before)
              statements.put.run({ provider, name: window.name, charged, refunded, keep: window.keepUntil })
          return {
            granted: granted.reduce((sum, claim) => sum + claim.granted, forNobody),
            claims: granted,
            spent: spent.map(({ charged, refunded }) => ({ charged, refunded })),
            closure,
            reopenedAt,
          }
        }),
      ),
    reopen: (provider, now) =>
      transaction(() => {
        const { closure, reopenedAt } = closures.inForce(provider, now)
        const at = Math.max(reopenedAt + 1, now)
        closures.put(provider, null, at)
        return { closure, reopenedAt: at }
      }),
  }
}
