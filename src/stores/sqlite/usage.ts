// Counts usage in the embedded store: a row per key and day. The units that each instance admitted stay in memory: with
// the connection ends the only process that could report them again. All processes on the file change it under the write lock.

import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { maxCounted, refuseRecord } from '../records.ts'
import { OvertakenError, type UsageBatch, type UsageGrant, type UsageRun, type UsageStore } from '../store.ts'
import { storeFormat } from '../store-format.ts'
import { type EmbeddedParts, rollBack, wholeSql } from './retry.ts'
import { embeddedTokens } from './tokens.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS usage (
    key_id TEXT NOT NULL, day TEXT NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
`
// For earlier days the store accepts an instance's own figure of its counted units.
const daysRemembered = 3

// A part takes a few ms, and requests pass before the next.
const rowsPerTurn = 2_000
const pauseBetweenPartsMs = 10

const statementsOn = (db: DatabaseSync) => ({
  begin: db.prepare('BEGIN IMMEDIATE'),
  commit: db.prepare('COMMIT'),
  find: db.prepare(`SELECT ${wholeSql('used')} FROM usage WHERE key_id = ? AND day = ?`),
  put: db.prepare(
    `INSERT INTO usage VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key_id, day) DO UPDATE SET used = ?3`,
  ),
  raise: db.prepare(
    `INSERT INTO usage VALUES (?, ?, ?, ?)
     ON CONFLICT (key_id, day) DO UPDATE SET used = CASE
       WHEN used BETWEEN 0 AND ${maxCounted} THEN MAX(used, excluded.used) ELSE excluded.used END`,
  ),
  findAll: db.prepare(
    `SELECT day, ${wholeSql('used')} AS used FROM usage WHERE key_id = ? AND day BETWEEN ? AND ?`,
  ),
  // No index on the end: each count would cost one more write. The table is walked in parts, in the order of its key.
  lastOfPart: db.prepare(
    `SELECT key_id, day FROM usage WHERE (key_id, day) > (?, ?) ORDER BY key_id, day LIMIT 1 OFFSET ${rowsPerTurn - 1}`,
  ),
  sweepPart: db.prepare(
    `DELETE FROM usage WHERE (key_id, day) > (?, ?) AND (key_id, day) <= (?, ?) AND keep_until <= ?`,
  ),
  sweepRest: db.prepare(`DELETE FROM usage WHERE (key_id, day) > (?, ?) AND keep_until <= ?`),
})

/** The units that each instance admitted, by day and key. */
const createAdmitted = () => {
  const byInstance = new Map<string, Map<string, Map<string, number>>>()
  return {
    of: (instance: string, day: string): Map<string, number> => {
      const days = byInstance.get(instance) ?? new Map<string, Map<string, number>>()
      const known = days.get(day)
      if (known) return known
      const admitted = new Map<string, number>()
      byInstance.set(instance, days.set(day, admitted))
      if (days.size > daysRemembered) days.delete([...days.keys()].sort()[0] ?? '')
      return admitted
    },
    byAll: (keyId: string, day: string): number =>
      [...byInstance.values()].reduce((sum, days) => sum + (days.get(day)?.get(keyId) ?? 0), 0),
  }
}

export const embeddedUsage = (parts: EmbeddedParts): UsageStore => {
  const { db, clock, withRetry, retryAfter, withLongRetry, observer } = parts
  db.exec(schema)
  const statements = statementsOn(db)
  statements.find.setReturnArrays(true)
  const takeTokens = embeddedTokens({ db, clock })
  const instances = createAdmitted()
  const sequences = new Map<string, number>()

  /** Undefined when the row is not a valid count: the count restarts at the units that this process knows to be admitted. */
  const readInFile = (keyId: string, day: string): number | undefined => {
    // Rows are arrays here, which the types do not express.
    const row = statements.find.get(keyId, day) as (number | null)[] | undefined
    return row ? (row[0] ?? undefined) : 0
  }
  /** The last batch did not get into the file. */
  let isUnwritten = false
  const refuse = (keyId: string, day: string): void =>
    refuseRecord(observer, 'usage', keyId, `its count of ${day} can't be read`)

  /** Counts in one transaction. @param damaged gets the keys whose count could not be read */
  const count = ({ instance, day, keepUntil, entries }: UsageBatch, damaged: string[]): UsageGrant[] => {
    const admittedHere = instances.of(instance, day)
    statements.begin.run()
    try {
      const grants = entries.map(({ keyId, units, runs, buckets, limit, admitted, confirmed }) => {
        const found = readInFile(keyId, day)
        const before = found ?? instances.byAll(keyId, day)
        if (found === undefined) damaged.push(keyId)
        // Units that the count has lost are counted again.
        const mine = Math.min(before, admittedHere.get(keyId) ?? confirmed)
        const corrected = Math.max(0, before + admitted - mine)
        const left = Math.max(0, limit - corrected)
        const rate = buckets && takeTokens(keyId, buckets, runs)
        const granted = runs ? grantedOf(runs, left, rate?.taken) : Math.min(left, units)
        const used = corrected + granted
        if (used !== found) statements.put.run(keyId, day, used, keepUntil)
        return rate ? { granted, used, before, tokens: rate } : { granted, used, before }
      })
      statements.commit.run()
      isUnwritten = false
      return grants
    } catch (error) {
      rollBack(db)
      isUnwritten = true
      throw error
    }
  }
  const commit = (batch: UsageBatch): UsageGrant[] => {
    const { instance, sequence, day, entries } = batch
    const last = sequences.get(instance) ?? 0
    if (last >= sequence) throw new OvertakenError(last)
    const damaged: string[] = []
    const grants = count(batch, damaged)
    sequences.set(instance, sequence)
    for (const keyId of damaged) refuse(keyId, day)
    const admittedHere = instances.of(instance, day)
    entries.forEach(({ keyId, admitted }, i) => {
      admittedHere.set(keyId, admitted + (grants[i]?.granted ?? 0))
    })
    return grants
  }

  return {
    partitionOf: () => 0,
    // As `withRetry`, without its closure: each request waits for this.
    commit: async batch => {
      try {
        return commit(batch)
      } catch (error) {
        return retryAfter(() => commit(batch), error)
      }
    },
    usedOn: (keyId, days) =>
      withRetry(() => {
        const sorted = days.toSorted()
        const found = statements.findAll.all(keyId, sorted[0] ?? '', sorted.at(-1) ?? '')
        const rows = new Map(found.map(({ day, used }) => [day, used]))
        return days.map(day => {
          const used = rows.get(day)
          if (used !== null) return Number(used ?? 0)
          refuse(keyId, day)
          return instances.byAll(keyId, day)
        })
      }),
    // Only this process would listen.
    onUsage: () => () => {},
    usageMessagesArrive: () => true,
    // Where the disk was full, only a write shows whether it still is: reports that change no count write nothing.
    time: () =>
      withRetry(() => {
        if (isUnwritten) db.exec(`PRAGMA user_version = ${storeFormat}`)
        isUnwritten = false
        return clock.now()
      }),
    dropDays: () => sweepEnded(parts, statements),
    raiseUsed: (keyId, day, used, keepUntil) =>
      withLongRetry(() => {
        if (used > 0) statements.raise.run(keyId, day, used, keepUntil)
      }),
  }
}

/** Deletes rows by their end, not by their day: an import may have brought rows with another end. */
const sweepEnded = async (
  { clock, withRetry }: EmbeddedParts,
  statements: ReturnType<typeof statementsOn>,
): Promise<void> => {
  for (let from: readonly [keyId: string, day: string] = ['', '']; ; ) {
    const next = await withRetry(() => {
      const last = statements.lastOfPart.get(...from)
      if (!last) return void statements.sweepRest.run(...from, clock.now())
      const to = [String(last.key_id), String(last.day)] as const
      statements.sweepPart.run(...from, ...to, clock.now())
      return to
    })
    if (!next) return
    from = next
    await pause(pauseBetweenPartsMs)
  }
}

/**
 * The units that runs of requests get of those that are left, only the first `most` requests. The Lua of redis/usage-scripts.ts must
 * do the same.
 */
const grantedOf = (runs: readonly UsageRun[], left: number, most = Number.POSITIVE_INFINITY): number => {
  let granted = 0
  let more = most
  for (const { unitsEach, requests } of runs) {
    const inTime = Math.min(requests, more)
    more -= inTime
    if (unitsEach > 0) granted += unitsEach * Math.min(inTime, Math.floor((left - granted) / unitsEach))
  }
  return granted
}
