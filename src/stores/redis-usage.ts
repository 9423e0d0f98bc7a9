// Counts usage in Redis. A day's count is one hash: the sum, and the units that each instance admitted, so that an
// instance can report again after a lost batch and nothing is counted twice. A hash per key and month keeps the daily sums
// for reports. The Lua scripts are in redis-usage-scripts.ts.

import type { Result } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { dayNumber, dayOfNumber, hourMs, utcDayMs } from '../calendar.ts'
import { longestName, shown, wholeFrom, wholeIn } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { usagePartitionOf } from './redis-key-names.ts'
import type { RedisSubscriptions } from './redis-subscriptions.ts'
import { commitScript, legibleScript, raiseScript, usedScript } from './redis-usage-scripts.ts'
import {
  OvertakenError,
  StoreError,
  type UsageEntry,
  type UsageGrant,
  type UsageMessage,
  type UsageStore,
} from './store.ts'

// A batch may still be in flight when its day ends.
const keepLiveForMs = hourMs
const mostNames = 10_000

/** Of one count: its two Redis keys, and its message without the number. */
type CountNames = { day: string; live: string; record: string; message: string }

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaCommit(
      keys: number,
      ...keysAndValues: (string | number)[]
    ): Result<string | [granted: string, repaired: string], Context>
    abohawaRaise(
      live: string,
      record: string,
      used: number,
      liveUntil: number,
      recordUntil: number,
      dayOfMonth: string,
    ): Result<string, Context>
    abohawaUsed(record: string, ...daysOfMonth: string[]): Result<string, Context>
    abohawaLegible(live: string): Result<number, Context>
  }
}

export const redisUsage = (
  { redis, names, attempt, observer }: RedisParts,
  subscribe: RedisSubscriptions['subscribe'],
): UsageStore => {
  redis.defineCommand('abohawaCommit', { lua: commitScript })
  redis.defineCommand('abohawaRaise', { numberOfKeys: 2, lua: raiseScript })
  redis.defineCommand('abohawaUsed', { numberOfKeys: 1, lua: usedScript })
  redis.defineCommand('abohawaLegible', { numberOfKeys: 1, lua: legibleScript })
  const channel = names.usageChannel
  const monthUsage = (keyId: string, day: string) => names.monthUsage(keyId, day.slice(0, 7))
  // Caches names of recently counted keys: every command carries those of its whole batch.
  // By size, because lru-cache allocates `max` entries at once.
  const lastNames = new LRUCache<string, CountNames>({ maxSize: mostNames, sizeCalculation: () => 1 })
  const namesOf = (keyId: string, day: string): CountNames => {
    const known = lastNames.get(keyId)
    if (known?.day === day) return known
    const made = {
      day,
      live: names.dayUsage(keyId, day),
      record: monthUsage(keyId, day),
      message: `${keyId} ${day}`,
    }
    lastNames.set(keyId, made)
    return made
  }

  return {
    partitionOf: redis.isCluster ? usagePartitionOf : () => 0,
    commit: ({ instance, sequence, entries }) =>
      attempt(async () => {
        const keys: string[] = []
        const messages: string[] = []
        const numbers: number[] = []
        const days: [dayOfMonth: string, liveUntil: number, recordUntil: number][] = []
        let day = ''
        for (const entry of entries) {
          if (entry.day !== day) {
            day = entry.day
            days.push([
              day.slice(-2),
              Math.min(entry.keepUntil, entry.endsAt + keepLiveForMs),
              // One hash per month: its last day is written up to 31 days after the first.
              entry.keepUntil + 31 * utcDayMs,
            ])
          }
          const { live, record, message } = namesOf(entry.keyId, day)
          keys.push(live, record)
          messages.push(message)
          numbers.push(entry.units, entry.limit, entry.admitted, entry.confirmed, entry.step, days.length)
        }
        const reply = await redis
          .abohawaCommit(
            keys.length,
            ...keys,
            instance,
            sequence,
            channel,
            JSON.stringify(days),
            JSON.stringify(numbers),
            ...messages,
          )
          .catch((error: unknown) => {
            throw overtakingIn(error) ?? error
          })
        if (typeof reply === 'string') return grantsIn(reply, entries)
        const [grants, repaired] = reply
        for (const item of repaired.split(' ')) {
          const [number, record, used] = item.split(':')
          const entry = entries[Number(number) - 1]
          if (!entry || (record !== 'day' && record !== 'month')) continue
          observer.quotaRepaired({ keyId: entry.keyId, day: entry.day, record, used: wholeFrom(used) })
        }
        return grantsIn(grants, entries)
      }),
    usedOn: (keyId, days) =>
      attempt(async () => {
        const months = Map.groupBy(days, day => day.slice(0, 7))
        const found = new Map<string, number>()
        await Promise.all(
          [...months].map(async ([month, ofMonth]) => {
            const name = names.monthUsage(keyId, month)
            const counts = (await redis.abohawaUsed(name, ...ofMonth.map(day => day.slice(8)))).split(' ')
            for (const [i, day] of ofMonth.entries()) {
              if (counts[i] !== '-') found.set(day, wholeFrom(counts[i]))
              else {
                observer.recordRefused({
                  record: 'usage',
                  name: shown(name),
                  fault: `its count of ${day} is no whole number`,
                })
                found.set(day, wholeFrom(await redis.abohawaLegible(names.dayUsage(keyId, day))))
              }
            }
          }),
        )
        return days.map(day => found.get(day) ?? 0)
      }),
    lastUsedOn: (keyId, since, upTo) =>
      attempt(async () => {
        for (let month = upTo.slice(0, 7); month >= since.slice(0, 7); month = monthBefore(month)) {
          const counts = (await redis.abohawaUsed(names.monthUsage(keyId, month), ...daysOfMonth)).split(' ')
          const day = daysOfMonth
            .map(number => `${month}-${number}`)
            // What is unreadable was a count.
            .findLast((day, i) => counts[i] !== '0' && day >= since && day <= upTo)
          if (day !== undefined) return day
        }
        return undefined
      }),
    onUsage: listener => {
      let lost = false
      return subscribe(channel, {
        onMessage: text => {
          const message = messageIn(text)
          if (message) listener(message)
          else
            observer.recordRefused({
              record: 'message',
              name: shown(channel),
              fault: `it says "${shown(text)}"`,
            })
        },
        onLost: () => {
          lost = true
          listener('lost')
        },
        // Messages until now were missed; before the first connection there was nothing to miss.
        onSubscribed: () => {
          if (lost) listener('lost')
        },
      })
    },
    time: () =>
      attempt(async () => {
        const [seconds, micros] = await redis.time()
        return wholeFrom(Number(seconds)) * 1000 + wholeFrom(Number(micros)) / 1000
      }),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(async () => {
        const repaired = await redis.abohawaRaise(
          names.dayUsage(keyId, day),
          monthUsage(keyId, day),
          used,
          // By then the day is over in every time zone; the count of a past day expires at once.
          (dayNumber(day) + 3) * utcDayMs,
          keepUntil + 31 * utcDayMs,
          day.slice(8),
        )
        for (const record of ['day', 'month'] as const)
          if (repaired.includes(record)) observer.quotaRepaired({ keyId, day, record, used })
      }),
  }
}

const daysOfMonth = Array.from({ length: 31 }, (_, i) => String(i + 1).padStart(2, '0'))
const monthBefore = (month: string): string => dayOfNumber(dayNumber(`${month}-01`) - 1).slice(0, 7)

/** The reply of the script as grants; only whole numbers leave the store. @throws StoreError */
const grantsIn = (reply: string, entries: readonly UsageEntry[]): UsageGrant[] => {
  const numbers = reply === '' ? [] : reply.split(' ')
  if (numbers.length !== entries.length * 3)
    throw new StoreError(`Redis answered ${numbers.length} numbers for ${entries.length} counts`)
  return entries.map((_, i) => ({
    granted: wholeFrom(numbers[3 * i]),
    used: wholeFrom(numbers[3 * i + 1]),
    before: wholeFrom(numbers[3 * i + 2]),
  }))
}

const overtakingIn = (error: unknown): OvertakenError | undefined => {
  const [, by] = /^OVERTAKEN by batch (\d+)/.exec(error instanceof Error ? error.message : '') ?? []
  const sequence = wholeIn(by)
  return sequence === undefined ? undefined : new OvertakenError(sequence)
}

const messageIn = (text: string): UsageMessage | undefined => {
  const [keyId = '', day = '', used, ...more] = text.length > 3 * longestName ? [] : text.split(' ')
  const count = wholeIn(used)
  return count !== undefined && more.length === 0 && /^\d{4}-\d\d-\d\d$/.test(day)
    ? { keyId, day, used: count }
    : undefined
}
