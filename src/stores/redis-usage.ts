// What keys used, counted in Redis. A day's count is one hash: the sum, and what each instance has dealt of it, so that
// an instance can say again what it dealt after a trip was lost and nothing is counted twice. Beside it a hash per key
// and month keeps the sums for as long as usage is kept.

import type { Result } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { dayNumber, hourMs, utcDayMs } from '../calendar.ts'
import { longestName, shown, wholeFrom, wholeIn } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { usagePartitionOf } from './redis-key-names.ts'
import type { RedisListening } from './redis-listening.ts'
import { legibleScript, raiseScript, takeScript, usedScript } from './redis-usage-scripts.ts'
import { OvertakenError, StoreError, type Take, type Taken, type UsageStore, type UsedNews } from './store.ts'

// A trip may still be on its way when its day is over.
const keepLiveForMs = hourMs
const mostNames = 10_000

/** What a command brings of a key's count: its two keys, and the message of it without the number. */
type CountNames = { day: string; live: string; record: string; message: string }

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaTake(
      keys: number,
      ...keysAndValues: (string | number)[]
    ): Result<string | [taken: string, mended: string], Context>
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
  listen: RedisListening['listen'],
): UsageStore => {
  redis.defineCommand('abohawaTake', { lua: takeScript })
  redis.defineCommand('abohawaRaise', { numberOfKeys: 2, lua: raiseScript })
  redis.defineCommand('abohawaUsed', { numberOfKeys: 1, lua: usedScript })
  redis.defineCommand('abohawaLegible', { numberOfKeys: 1, lua: legibleScript })
  const channel = names.usageChannel
  const monthUsage = (keyId: string, day: string) => names.monthUsage(keyId, day.slice(0, 7))
  // Of the keys that were counted last, because a batch names each of its keys in every command.
  const lastNames = new LRUCache<string, CountNames>({ max: mostNames })
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
    take: ({ instance, sequence, takes }) =>
      attempt(async () => {
        const keys: string[] = []
        const messages: string[] = []
        const numbers: number[] = []
        const days: [dayOfMonth: string, liveUntil: number, recordUntil: number][] = []
        let day = ''
        for (const take of takes) {
          if (take.day !== day) {
            day = take.day
            days.push([
              day.slice(-2),
              Math.min(take.keepUntil, take.endsAt + keepLiveForMs),
              // The record is of a month, and its days are written one after the other.
              take.keepUntil + 31 * utcDayMs,
            ])
          }
          const { live, record, message } = namesOf(take.keyId, day)
          keys.push(live, record)
          messages.push(message)
          numbers.push(take.units, take.limit, take.dealt, take.confirmed, take.step, days.length)
        }
        const reply = await redis
          .abohawaTake(
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
        if (typeof reply === 'string') return takenIn(reply, takes)
        const [taken, mended] = reply
        for (const note of mended.split(' ')) {
          const [number, record, used] = note.split(':')
          const take = takes[Number(number) - 1]
          if (!take || (record !== 'day' && record !== 'month')) continue
          observer.quotaMended({ keyId: take.keyId, day: take.day, record, used: wholeFrom(used) })
        }
        return takenIn(taken, takes)
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
    onUsed: listener => {
      let lost = false
      return listen(channel, {
        message: text => {
          const news = newsIn(text)
          if (news) listener(news)
          else
            observer.recordRefused({
              record: 'message',
              name: shown(channel),
              fault: `it says "${shown(text)}"`,
            })
        },
        lost: () => {
          lost = true
          listener('lost')
        },
        // What was told until now was missed; before the first time there was nothing to miss.
        again: () => {
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
        const mended = await redis.abohawaRaise(
          names.dayUsage(keyId, day),
          monthUsage(keyId, day),
          used,
          // Wherever it is the day, it is over by then; a count of a past day is gone at once.
          (dayNumber(day) + 3) * utcDayMs,
          keepUntil + 31 * utcDayMs,
          day.slice(8),
        )
        for (const record of ['day', 'month'] as const)
          if (mended.includes(record)) observer.quotaMended({ keyId, day, record, used })
      }),
  }
}

/** What a script took, as numbers; nothing but whole numbers leaves the store. @throws StoreError */
const takenIn = (reply: string, takes: readonly Take[]): Taken[] => {
  const told = reply === '' ? [] : reply.split(' ')
  if (told.length !== takes.length * 3)
    throw new StoreError(`Redis answered ${told.length} numbers for ${takes.length} counts`)
  return takes.map((_, i) => ({
    taken: wholeFrom(told[3 * i]),
    used: wholeFrom(told[3 * i + 1]),
    before: wholeFrom(told[3 * i + 2]),
  }))
}

const overtakingIn = (error: unknown): OvertakenError | undefined => {
  const [, by] = /^OVERTAKEN by trip (\d+)/.exec(error instanceof Error ? error.message : '') ?? []
  const sequence = wholeIn(by)
  return sequence === undefined ? undefined : new OvertakenError(sequence)
}

const newsIn = (message: string): UsedNews | undefined => {
  const [keyId = '', day = '', used, ...more] = message.length > 3 * longestName ? [] : message.split(' ')
  const count = wholeIn(used)
  return count !== undefined && more.length === 0 && /^\d{4}-\d\d-\d\d$/.test(day)
    ? { keyId, day, used: count }
    : undefined
}
