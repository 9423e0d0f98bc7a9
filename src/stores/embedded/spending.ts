// The spending at the provider, in the embedded store: one counter per window, the instant until which the provider is closed,
// and its last reopening. Every step is one write transaction, so that a command in another process can't interleave. A counter that is
// missing or unreadable restarts at what the caller knows; an impossible closure is removed. The caller decides what to spend and why.

import { safeText } from '../../outside-text.ts'
import { roomOf, unshared } from '../fair-share.ts'
import { keepReopeningForMs, longestClosureMs, longestReason, shown } from '../records.ts'
import type { GrantedClaim, SpendingClaim, SpendingStore, SpendingWindow } from '../store.ts'
import { type EmbeddedParts, inTransaction, wholeSql } from './attempt.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS spending (
    provider TEXT NOT NULL, name TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (provider, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS spending_by_consumer (
    provider TEXT NOT NULL, name TEXT NOT NULL, consumer TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (provider, name, consumer)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS spending_by_consumer_until ON spending_by_consumer (keep_until);
  CREATE TABLE IF NOT EXISTS closures (provider TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS closure_reasons (provider TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS reopenings (provider TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

/** The spending of a store on this database. */
export const embeddedSpending = ({
  db,
  clock,
  attempt,
  patiently,
  observer,
}: EmbeddedParts): SpendingStore => {
  db.exec(schema)
  const statements = {
    used: db.prepare(`SELECT ${wholeSql('used')} AS used FROM spending WHERE provider = ? AND name = ?`),
    put: db.prepare(
      `INSERT INTO spending VALUES (:provider, :name, :used, :keep)
       ON CONFLICT (provider, name) DO UPDATE SET used = :used, keep_until = :keep`,
    ),
    // A few dozen rows at most, so that every reservation may scan them all.
    sweep: db.prepare(`DELETE FROM spending WHERE keep_until <= ?`),
    usedBy: db.prepare(
      `SELECT ${wholeSql('used')} AS used FROM spending_by_consumer WHERE provider = ? AND name = ? AND consumer = ?`,
    ),
    putBy: db.prepare(
      `INSERT INTO spending_by_consumer VALUES (:provider, :name, :consumer, :used, :keep)
       ON CONFLICT (provider, name, consumer) DO UPDATE SET used = :used, keep_until = :keep`,
    ),
    hasOther: db.prepare(
      `SELECT 1 FROM spending_by_consumer WHERE provider = ? AND name = ? AND consumer <> ? LIMIT 1`,
    ),
    sweepBy: db.prepare(`DELETE FROM spending_by_consumer WHERE keep_until <= ?`),
    closedUntil: db.prepare(`SELECT ${wholeSql('until')} AS until FROM closures WHERE provider = ?`),
    close: db.prepare(
      `INSERT INTO closures VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET until = CASE
         WHEN until BETWEEN excluded.until AND excluded.until + ${longestClosureMs} THEN until ELSE excluded.until END`,
    ),
    open: db.prepare(`DELETE FROM closures WHERE provider = ?`),
    reason: db.prepare(
      `SELECT substr(reason, 1, ${longestReason}) AS reason FROM closure_reasons WHERE provider = ?`,
    ),
    putReason: db.prepare(
      `INSERT INTO closure_reasons VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET reason = excluded.reason`,
    ),
    dropReason: db.prepare(`DELETE FROM closure_reasons WHERE provider = ?`),
    reopenedAt: db.prepare(`SELECT ${wholeSql('at')} AS at FROM reopenings WHERE provider = ?`),
    putReopening: db.prepare(
      `INSERT INTO reopenings VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET at = excluded.at`,
    ),
  }
  const refuse = (name: string, fault: string) =>
    observer.recordRefused({ record: 'spending', name: shown(name), fault })
  /** Undefined without a counter, null if it is unreadable. */
  const usedIn = (provider: string, name: string) =>
    statements.used.get(provider, name)?.used as number | null | undefined
  /** Undefined without a closure, null if it is unreadable. */
  const closedUntil = (provider: string) =>
    statements.closedUntil.get(provider)?.until as number | null | undefined
  const closureReason = (provider: string): string | null => {
    const { reason } = statements.reason.get(provider) ?? {}
    return typeof reason === 'string' ? safeText(reason, longestReason) : null
  }
  /** 0 without one of late, or for an instant that nobody can have reopened at. */
  const reopenedAt = (provider: string, now: number): number => {
    const at = (statements.reopenedAt.get(provider)?.at as number | null | undefined) ?? 0
    return at > now + longestClosureMs || at < now - keepReopeningForMs ? 0 : at
  }
  const usedBy = (provider: string, name: string, consumer: string): number | undefined =>
    (statements.usedBy.get(provider, name, consumer)?.used as number | null | undefined) ?? undefined
  /** Grants claims one after the other, and counts them for their consumers. */
  const claimsGranted = (
    provider: string,
    windows: readonly (SpendingWindow & { readonly used: number })[],
    claims: readonly SpendingClaim[],
    unit: number,
    grantedBefore: number,
  ): GrantedClaim[] => {
    const put = ({ name, keepUntil }: SpendingWindow, consumer: string, used: number) =>
      statements.putBy.run({ provider, name, consumer, used, keep: keepUntil })
    // One that wants nothing now is there too: nobody else is alone then.
    for (const { consumer } of claims)
      for (const window of windows)
        if (usedBy(provider, window.name, consumer) === undefined) put(window, consumer, 0)
    let total = grantedBefore
    return claims.map(({ consumer, wanted }) => {
      const rooms = windows.map(({ name, limit, used, shares }) =>
        roomOf(
          {
            limit,
            used: used + total,
            usedBy: usedBy(provider, name, consumer) ?? 0,
            isAlone: statements.hasOther.get(provider, name, consumer) === undefined,
          },
          shares ?? unshared(limit),
        ),
      )
      const granted = Math.max(0, Math.floor(Math.min(wanted, ...rooms) / unit)) * unit
      total += granted
      if (granted > 0)
        for (const window of windows)
          put(window, consumer, (usedBy(provider, window.name, consumer) ?? 0) + granted)
      return { granted, heldIn: rooms.flatMap((room, i) => (room - granted < unit ? [i] : [])) }
    })
  }
  const inOne = <Value>(step: () => Value, run = attempt): Promise<Value> =>
    run(() => inTransaction(db, step))

  return {
    reserve: ({ provider, windows, wanted, claims = [], unit, now }) =>
      inOne(() => {
        statements.sweep.run(now)
        statements.sweepBy.run(now)
        const used = windows.map(({ name, keepUntil, known = 0 }) => {
          const count = usedIn(provider, name)
          if (typeof count === 'number' || (count === undefined && known === 0)) return count ?? 0
          refuse(`${provider} ${name}`, 'it was missing or not readable, and was restarted')
          statements.put.run({ provider, name, used: known, keep: keepUntil })
          return known
        })
        const closed = closedUntil(provider)
        if (closed === null || (closed !== undefined && closed > now + longestClosureMs)) {
          refuse(`${provider} closed`, 'it was not readable, and was removed')
          statements.open.run(provider)
        } else if (closed !== undefined && closed > now)
          return {
            granted: 0,
            closedUntil: closed,
            reopenedAt: reopenedAt(provider, now),
            used,
            claims: claims.map(() => ({ granted: 0, heldIn: [] })),
          }
        const room = Math.min(wanted, ...windows.map(({ limit }, i) => limit - (used[i] ?? 0)))
        const uses = windows.map((window, i) => ({ ...window, used: used[i] ?? 0 }))
        const before = Math.max(0, Math.floor(room / unit)) * unit
        const granted = claimsGranted(provider, uses, claims, unit, before)
        const total = granted.reduce((sum, claim) => sum + claim.granted, before)
        if (total > 0)
          for (const { name, keepUntil, used: amount } of uses)
            statements.put.run({ provider, name, used: amount + total, keep: keepUntil })
        return {
          granted: total,
          closedUntil: null,
          reopenedAt: reopenedAt(provider, now),
          used: used.map(amount => amount + total),
          claims: granted,
        }
      }),
    settle: ({ provider, changes }) =>
      inOne(() => {
        for (const { name, by, atLeast, keepUntil, consumers = [] } of changes) {
          for (const { consumer, by: part } of consumers) {
            const known = usedBy(provider, name, consumer)
            if (known !== undefined)
              statements.putBy.run({
                provider,
                name,
                consumer,
                used: Math.max(0, known + part),
                keep: keepUntil,
              })
          }
          const found = usedIn(provider, name)
          const before = found ?? atLeast ?? (found === undefined && by > 0 ? 0 : undefined)
          // The next reservation repairs a counter that is missing or unreadable, and unknown to the caller.
          if (before === undefined) continue
          const used = Math.max(0, Math.max(before, atLeast ?? 0) + by)
          statements.put.run({ provider, name, used, keep: keepUntil })
        }
      }),
    closeUntil: (provider, until, { now, reopenedAt: known, reason }) =>
      inOne(() => {
        const reopened = reopenedAt(provider, now)
        if (known !== null && reopened > known) return reopened
        const before = closedUntil(provider)
        statements.close.run(provider, until)
        if (closedUntil(provider) !== before)
          statements.putReason.run(provider, safeText(reason, longestReason))
        return reopened
      }),
    reopen: (provider, now) =>
      inOne(() => {
        const found = { closedUntil: closedUntil(provider) ?? null, reason: closureReason(provider) }
        const at = Math.max(reopenedAt(provider, now) + 1, now)
        statements.open.run(provider)
        statements.dropReason.run(provider)
        statements.putReopening.run(provider, at)
        return { ...found, reopenedAt: at }
      }, patiently),
    closure: provider =>
      attempt(() => ({
        closedUntil: closedUntil(provider) ?? null,
        reason: closureReason(provider),
        reopenedAt: reopenedAt(provider, clock.now()),
      })),
    spending: (provider, names) =>
      attempt(() => ({
        used: names.map(name => {
          const count = usedIn(provider, name)
          if (count === null) refuse(`${provider} ${name}`, 'it is not a whole number')
          return count
        }),
        closedUntil: closedUntil(provider) ?? null,
        reopenedAt: reopenedAt(provider, clock.now()),
      })),
    // The file is there for as long as this process is.
    onLost: () => () => {},
  }
}
