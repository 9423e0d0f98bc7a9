// Counts usage in Redis. Per partition, a hash has the counts of a day: for each key the sum, and the units that each instance
// admitted, so that an instance can report again after a lost batch and nothing is counted twice. A second hash has the
// daily sums of a month for reports.

import { dayNumber, dayOfNumber, daysUpTo, hourMs, utcDayMs } from '../../common/calendar.ts'
import {
  forMessage,
  longestId,
  type RecordObserver,
  refuseRecord,
  wholeIn,
  wholeNumbersIn,
} from '../records.ts'
import {
  OvertakenError,
  StoreError,
  type UsageEntry,
  type UsageGrant,
  type UsageMessage,
  type UsageStore,
} from '../store.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionsOn } from './key-names.ts'
import { redisTime, scriptOn, sendNow } from './server.ts'
import type { RedisSubscriptions, Subscription } from './subscriptions.ts'
import { commitScript, raiseScript } from './usage-scripts.ts'

// Gateways drop the counts of a day an hour after its end, and the sums of a month with the last of its days, without
// blocking Redis. These expiries are for hashes that no gateway dropped.
const keepLiveForMs = 6 * hourMs
// From the end of the first day that was written: a month of 31 days, and a week.
const keepMonthForMs = 38 * utcDayMs

// How many days back are dropped, and two months: what gateways that were stopped have left.
const daysDropped = 3

export const redisUsage = (
  { redis, names, observer }: RedisParts,
  { subscribe, arrive }: Pick<RedisSubscriptions, 'subscribe' | 'arrive'>,
): UsageStore => {
  type Reply = string | [granted: string, damaged: string, tokens: string]
  const commit = scriptOn<Reply>(redis, 'abohawaCommit', undefined, commitScript)
  const raise = scriptOn<number>(redis, 'abohawaRaise', 2, raiseScript)
  const channel = names.usageChannel
  const partitions = usagePartitionsOn(redis)
  const liveOf = (keyId: string, day: string) => names.dayUsage(partitions.of(keyId), day)
  const tokensOf = (keyId: string) => names.tokens(partitions.of(keyId), keyId)
  const recordOf = (keyId: string, month: string) => names.monthUsage(partitions.of(keyId), month)

  const refuse = (name: string, fault: string): void => refuseRecord(observer, 'usage', name, fault)
  /** The sums of a key by day; none where they can't be read. */
  const sumsOf = async (keyId: string, month: string): Promise<ReadonlyMap<string, number>> => {
    const name = recordOf(keyId, month)
    const sums = sumsIn((await redis.hget(name, keyId)) ?? '', month)
    if (!sums) refuse(name, `its counts of ${forMessage(keyId)} can't be read`)
    return sums ?? new Map()
  }

  return {
    partitionOf: partitions.of,
    commit: async ({ instance, sequence, day, endsAt, keepUntil, entries }) => {
      const [first] = entries
      if (!first) return []
      const rated = entries.some(({ buckets }) => buckets) ? ratedOf(entries, tokensOf) : noneRated
      const replied = commit(
        2 + rated.keys.length,
        liveOf(first.keyId, day),
        recordOf(first.keyId, day.slice(0, 7)),
        ...rated.keys,
        instance,
        sequence,
        channel,
        day,
        endsAt + keepLiveForMs,
        keepUntil + keepMonthForMs,
        entries.length,
        packed(entries),
        ...rated.values,
      )
      sendNow(redis)
      const reply = await replied.catch((error: unknown) => {
        throw overtakingIn(error) ?? error
      })
      if (typeof reply === 'string') return grantsIn(reply, entries.length)
      const [grants, damaged, tokens] = reply
      for (const item of damaged === '' ? [] : damaged.split(' ')) {
        const keyId = entries[Number(item) - 1]?.keyId
        if (keyId !== undefined) refuse(keyId, `its count of ${day} can't be read`)
        else
          refuse(
            item === 'day' ? liveOf(first.keyId, day) : recordOf(first.keyId, day.slice(0, 7)),
            'it had another Redis type and was reset',
          )
      }
      return withTokens(grantsIn(grants, entries.length), entries, tokens)
    },
    usedOn: async (keyId, days) => {
      const months = [...new Set(days.map(day => day.slice(0, 7)))]
      const sums = await Promise.all(months.map(month => sumsOf(keyId, month)))
      const all = new Map(sums.flatMap(each => [...each]))
      return days.map(day => all.get(day) ?? 0)
    },
    onUsage: listener => subscribe(usageSubscription(listener, channel, observer)),
    usageMessagesArrive: arrive,
    time: () => redisTime(redis),
    raiseUsed: async (keyId, day, used, keepUntil) => {
      await raise(
        liveOf(keyId, day),
        recordOf(keyId, day.slice(0, 7)),
        keyId,
        used,
        // By then the day is over in every time zone; the counts of a past day expire immediately.
        (dayNumber(day) + 3) * utcDayMs,
        keepUntil + keepMonthForMs,
        day.slice(8),
      )
    },
    dropDays: async ({ countsBefore, sumsBefore }) => {
      const days = daysUpTo(countsBefore, daysDropped + 1).slice(1)
      const detailDays = daysUpTo(countsBefore, daysDropped + 3).slice(3)
      const lastMonth = monthBefore(sumsBefore.slice(0, 7))
      const months = [lastMonth, monthBefore(lastMonth)]
      await Promise.all(
        partitions.all.map(partition =>
          // A large hash is freed in another thread.
          redis.unlink(
            ...days.map(day => names.dayUsage(partition, day)),
            ...detailDays.map(day => names.usageDetail(partition, day)),
            ...months.map(month => names.monthUsage(partition, month)),
          ),
        ),
      )
    },
  }
}

const usageSubscription = (
  listener: Parameters<UsageStore['onUsage']>[0],
  channel: string,
  observer: RecordObserver,
): Subscription => {
  let lost = false
  return {
    onMessage: text => {
      const message = messageIn(text)
      if (message) listener(message)
      else refuseRecord(observer, 'message', channel, `it says "${forMessage(text)}"`)
    },
    onLost: () => {
      lost = true
      listener('lost')
    },
    // Messages until now were missed, unless this is the first connection. While no connection holds, counts are read instead.
    onSubscribed: () => {
      if (lost) listener('lost')
      lost = false
    },
  }
}

const entryBytes = 5 * 8 + 2
const runBytes = 2 * 8
// Of UTF-8.
const maxBytesPerCharacter = 3

/**
 * The entries in the form that the script reads: little-endian, numbers as doubles, a key's id after its length. Behind all of them
 * come the runs of those that have any.
 */
const packed = (entries: readonly UsageEntry[]): Buffer => {
  let most = 0
  for (const { keyId, runs } of entries)
    most += entryBytes + maxBytesPerCharacter * keyId.length + (runs ? runBytes * runs.length : 0)
  const bytes = Buffer.allocUnsafe(most)
  let at = 0
  const write = (number: number): void => {
    at = bytes.writeDoubleLE(number, at)
  }
  for (const { keyId, units, runs, limit, admitted, confirmed, step } of entries) {
    write(runs ? -runs.length : units)
    write(limit)
    write(admitted)
    write(confirmed)
    write(step)
    const length = bytes.write(keyId, at + 2)
    bytes.writeUInt16LE(length, at)
    at += 2 + length
  }
  for (const { runs } of entries)
    for (const { unitsEach, requests } of runs ?? []) {
      write(unitsEach)
      write(requests)
    }
  return bytes.subarray(0, at)
}

const noneRated = { keys: [] as string[], values: [] as (string | number)[] }
/** The entries with token buckets, as the script has them. */
const ratedOf = (entries: readonly UsageEntry[], nameOf: (keyId: string) => string): typeof noneRated => {
  const keys: string[] = []
  const values: (string | number)[] = []
  entries.forEach(({ keyId, buckets }, i) => {
    if (!buckets) return
    keys.push(nameOf(keyId))
    values.push(i + 1, buckets.length)
    for (const { name, capacity, perMs, spent } of buckets) values.push(name, capacity, perMs, spent)
  })
  return { keys, values }
}

/** The grants with what the script says of the buckets. @throws StoreError */
const withTokens = (
  grants: readonly UsageGrant[],
  entries: readonly UsageEntry[],
  text: string,
): UsageGrant[] => {
  const numbers = text === '' ? [] : text.split(' ').map(Number)
  let at = 0
  const all = grants.map((grant, i) => {
    const buckets = entries[i]?.buckets
    if (!buckets) return grant
    const [taken = Number.NaN, ...left] = numbers.slice(at, at + 1 + buckets.length)
    at += 1 + buckets.length
    return { ...grant, tokens: { taken, left } }
  })
  if (at !== numbers.length || !numbers.every(Number.isFinite))
    throw new StoreError(`expected ${at} numbers of buckets from Redis, got ${numbers.length}`)
  return all
}

/** `20:7 21:50` by day; undefined for anything else. */
const sumsIn = (text: string, month: string): ReadonlyMap<string, number> | undefined => {
  const items = text === '' ? [] : text.split(' ')
  if (!items.every(item => /^\d\d:\d{1,15}$/.test(item))) return undefined
  return new Map(items.map(item => [`${month}-${item.slice(0, 2)}`, Number(item.slice(3))]))
}
const monthBefore = (month: string): string => dayOfNumber(dayNumber(`${month}-01`) - 1).slice(0, 7)

/** The reply of the script as so many grants; only whole numbers leave the store. @throws StoreError */
const grantsIn = (reply: string, count: number): UsageGrant[] => {
  const numbers = wholeNumbersIn(reply)
  if (numbers.length !== count * 3)
    throw new StoreError(`expected ${count * 3} numbers of counts from Redis, got ${numbers.length}`)
  return Array.from({ length: count }, (_, i) => ({
    granted: numbers[3 * i] ?? 0,
    used: numbers[3 * i + 1] ?? 0,
    before: numbers[3 * i + 2] ?? 0,
  }))
}

const overtakingIn = (error: unknown): OvertakenError | undefined => {
  const [, by] = /^OVERTAKEN by batch (\d+)/.exec(error instanceof Error ? error.message : '') ?? []
  const sequence = wholeIn(by)
  return sequence === undefined ? undefined : new OvertakenError(sequence)
}

const messageIn = (text: string): UsageMessage | undefined => {
  const [keyId = '', day = '', used, ...more] = text.length > 2 * longestId ? [] : text.split(' ')
  const count = wholeIn(used)
  return count !== undefined && more.length === 0 && /^\d{4}-\d\d-\d\d$/.test(day)
    ? { keyId, day, used: count }
    : undefined
}
