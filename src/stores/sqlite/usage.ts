// Counts usage in the embedded store: a row per key and day. The units that each instance admitted stay in memory: with
// the connection ends the only process that could report them again. While the file can't be written, counts go to the reserve,
// and back once it can: whole sums of a day, so twice does no harm. All processes on the file read and change it under the write lock.
// Longer than 300 lines, because one count passes memory, file and reserve.

import { readSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../common/errors.ts'
import { maxCounted, shown } from '../records.ts'
import { OvertakenError, type UsageBatch, type UsageGrant, type UsageRun, type UsageStore } from '../store.ts'
import { type EmbeddedParts, isLocked, isUnwritten, rollBack, underLock, wholeSql } from './attempt.ts'
import { openReserve, type Reserve, type ReservedCount } from './reserve.ts'

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

// How often to retry the file while counts are in the reserve.
const retryEveryMs = 1_000

/**
 * Counts, and passes each changed count to `put`. May be called again where the first time had no effect.
 * @param isInFile the file has all counts, so that none needs to be looked up in the reserve
 */
type Counting<Value> = (put: (count: ReservedCount) => void, isInFile: boolean) => Value

/** Call `closeUsage` before the connection closes. */
export const embeddedUsage = ({
  db,
  path,
  clock,
  attempt,
  retry,
  patiently,
  observer,
}: EmbeddedParts & { readonly path: string }): UsageStore & { closeUsage(): void } => {
  db.exec(schema)
  const statements = {
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
  }
  statements.find.setReturnArrays(true)
  // By instance, day and key.
  const admittedBy = new Map<string, Map<string, Map<string, number>>>()
  const sequences = new Map<string, number>()

  const admittedOf = (instance: string, day: string): Map<string, number> => {
    const days = admittedBy.get(instance) ?? new Map<string, Map<string, number>>()
    const known = days.get(day)
    if (known) return known
    const admitted = new Map<string, number>()
    admittedBy.set(instance, days.set(day, admitted))
    if (days.size > daysRemembered) days.delete([...days.keys()].sort()[0] ?? '')
    return admitted
  }
  /** Undefined when the row is not a valid count: the count restarts at the units that this process knows to be admitted. */
  const readInFile = (keyId: string, day: string): number | undefined => {
    // Rows are arrays here, which the types do not express.
    const row = statements.find.get(keyId, day) as (number | null)[] | undefined
    return row ? (row[0] ?? undefined) : 0
  }
  const putRow = ({ keyId, day, used, keepUntil }: ReservedCount): void =>
    void statements.put.run(keyId, day, used, keepUntil)

  let reserve: Reserve | undefined
  /** This process has counted in the reserve, and not in the file since. */
  let isInUse = false
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  const firstByte = Buffer.alloc(1)
  /** Whether the reserve has counts, of other processes too. Looked up with every count: a read of one byte. */
  const hasReserved = (): boolean =>
    reserve !== undefined && readSync(reserve.file, firstByte, 0, 1, 0) === 1 && firstByte[0] !== 0

  const pauseRetries = (): void => {
    isWaiting = true
    clearTimeout(timer)
    timer = setTimeout(() => {
      isWaiting = false
    }, retryEveryMs).unref()
  }
  /** The counts that the file lacks, or has lower. */
  const missing = (counts: readonly ReservedCount[]): ReservedCount[] =>
    counts.filter(
      ({ keyId, day, used, keepUntil }) => keepUntil > clock.now() && (readInFile(keyId, day) ?? 0) < used,
    )
  // Only what is in the file for good is cleared. What can't be is found there again, and then lacks nothing.
  const clearWritten = (from: Reserve): void => {
    try {
      underLock(db, () => {
        if (missing(from.read().counts).length === 0) from.clear()
      })
    } catch {
      // The counts that were just written stay: their callers must not count them again.
    }
  }
  /** Raises the file to the reserve, and counts in the same transaction, so that another process can't interleave. */
  const countInFile = <Value>(count: Counting<Value>): Value => {
    let written: readonly ReservedCount[] | undefined
    let value: Value
    statements.begin.run()
    try {
      written = hasReserved() ? reserve?.read().counts : undefined
      for (const { keyId, day, used, keepUntil } of written ? missing(written) : [])
        statements.raise.run(keyId, day, used, keepUntil)
      value = count(putRow, true)
      statements.commit.run()
    } catch (error) {
      rollBack(db)
      throw error
    }
    if (reserve && written) clearWritten(reserve)
    if (isInUse || written?.length) observer.reserveWrittenBack(written?.length ?? 0)
    isInUse = false
    return value
  }
  /** @throws `reason` when the counts do not fit */
  const countInReserve = <Value>(count: Counting<Value>, reason: unknown): Value => {
    const changed: ReservedCount[] = []
    const value = count(each => changed.push(each), false)
    if (!reserve?.put(changed)) throw reason
    if (!isInUse) observer.reserveUsed(messageOf(reason))
    isInUse = true
    return value
  }
  /** Writes the reserve back and counts in the file; while that can't be written, counts in the reserve. */
  const countAnywhere = <Value>(count: Counting<Value>): Value => {
    let reason: unknown
    // Another process may have written the reserve back.
    if (!isWaiting || !hasReserved())
      try {
        return countInFile(count)
      } catch (error) {
        if (!isUnwritten(error) || !reserve) throw error
        reason = error
        pauseRetries()
      }
    // Not before it is needed: an error notes the stack, which takes longer than a count.
    reason ??= new Error('the store could not be written a moment ago')
    return underLock(db, () => countInReserve(count, reason))
  }
  const writeBackIfPossible = (): void => {
    if (!hasReserved()) return
    try {
      countInFile(() => {})
    } catch (error) {
      // The next count writes it back, or the next start.
      if (!isUnwritten(error) && !isLocked(error)) throw error
      pauseRetries()
    }
  }
  const takeOver = (): void => {
    try {
      reserve = openReserve(path)
    } catch (error) {
      observer.reserveMissing(messageOf(error))
      return
    }
    const { damaged } = reserve.read()
    if (damaged > 0)
      observer.recordRefused({
        record: 'usage',
        name: shown(path),
        fault: `${damaged} counts of its reserve could not be read`,
      })
    writeBackIfPossible()
  }
  if (path !== ':memory:') takeOver()

  const countOf = (keyId: string, day: string): number | undefined => {
    const kept = reserve?.find(keyId, day)?.used
    const inFile = readInFile(keyId, day)
    return kept === undefined ? inFile : Math.max(kept, inFile ?? 0)
  }
  const admittedByAll = (keyId: string, day: string): number =>
    [...admittedBy.values()].reduce((sum, days) => sum + (days.get(day)?.get(keyId) ?? 0), 0)

  const refuse = (keyId: string, day: string): void =>
    observer.recordRefused({
      record: 'usage',
      name: shown(keyId),
      fault: `its count of ${day} can't be read`,
    })

  const commit = ({ instance, sequence, day, keepUntil, entries }: UsageBatch): UsageGrant[] => {
    const last = sequences.get(instance) ?? 0
    if (last >= sequence) throw new OvertakenError(last)
    const admittedHere = admittedOf(instance, day)
    let damaged: string[] = []
    const count = (put: (count: ReservedCount) => void, isInFile: boolean): UsageGrant[] => {
      damaged = []
      return entries.map(({ keyId, units, runs, limit, admitted, confirmed }) => {
        const found = isInFile ? readInFile(keyId, day) : countOf(keyId, day)
        const before = found ?? admittedByAll(keyId, day)
        if (found === undefined) damaged.push(keyId)
        // Units that the count has lost are counted again.
        const mine = Math.min(before, admittedHere.get(keyId) ?? confirmed)
        const corrected = Math.max(0, before + admitted - mine)
        const left = Math.max(0, limit - corrected)
        const granted = runs ? grantedOf(runs, left) : Math.min(left, units)
        const used = corrected + granted
        if (used !== found) put({ keyId, day, used, keepUntil })
        return { granted, used, before }
      })
    }
    const results = countAnywhere(count)
    sequences.set(instance, sequence)
    for (const keyId of damaged) refuse(keyId, day)
    entries.forEach(({ keyId, admitted }, i) => {
      admittedHere.set(keyId, admitted + (results[i]?.granted ?? 0))
    })
    return results
  }

  return {
    closeUsage: () => {
      try {
        writeBackIfPossible()
      } finally {
        clearTimeout(timer)
        reserve?.close()
      }
    },
    partitionOf: () => 0,
    // What `attempt` does, here because each request waits for it.
    commit: async batch => {
      try {
        return commit(batch)
      } catch (error) {
        return retry(() => commit(batch), error)
      }
    },
    usedOn: (keyId, days) =>
      attempt(() => {
        const sorted = days.toSorted()
        const found = statements.findAll.all(keyId, sorted[0] ?? '', sorted.at(-1) ?? '')
        const rows = new Map(found.map(({ day, used }) => [day, used]))
        const kept = hasReserved() ? reserve : undefined
        return days.map(day => {
          const inFile = rows.get(day)
          const inReserve = kept?.find(keyId, day)?.used
          if (inFile !== null || inReserve !== undefined) return Math.max(inReserve ?? 0, Number(inFile ?? 0))
          refuse(keyId, day)
          return admittedByAll(keyId, day)
        })
      }),
    // One process: there is nobody to notify.
    onUsage: () => () => {},
    usageMessagesArrive: () => true,
    time: () => attempt(() => clock.now()),
    // By the end of each row, not by its day: an import may have brought rows with another end.
    dropDays: async () => {
      for (let from: readonly [keyId: string, day: string] = ['', '']; ; ) {
        const next = await attempt(() => {
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
    },
    raiseUsed: (keyId, day, used, keepUntil) =>
      patiently(() => {
        if (used > 0) statements.raise.run(keyId, day, used, keepUntil)
      }),
  }
}

/** The units that runs of requests get of those that are left. The Lua of redis/usage-scripts.ts says the same. */
const grantedOf = (runs: readonly UsageRun[], left: number): number => {
  let granted = 0
  for (const { unitsEach, requests } of runs)
    granted += unitsEach * Math.min(requests, Math.floor((left - granted) / unitsEach))
  return granted
}
