// Takes over the counts of the running day from format 1, where each key had hashes of its own, before a gateway counts. Reports
// read the earlier days from there (usage.ts), and those hashes expire by themselves. A gateway of an earlier version
// would go on counting there, so that two versions would each grant the whole limit: so none may be alive.

import type { Result } from 'ioredis'
import { dayOfNumber, utcDayMs } from '../../calendar.ts'
import { InputError } from '../../errors.ts'
import { wholeFrom } from '../records.ts'
import type { RedisClient } from './connection.ts'
import type { RedisFormat } from './format.ts'
import { type RedisKeyNames, usagePartitionsOn } from './key-names.ts'
import { isWrongType, recordsLua } from './records.ts'
import { keepMonthForMs } from './usage.ts'
import { keepUntilLua, sumsLua } from './usage-scripts.ts'

const idsPerRead = 1_000
// A command of so many keys takes Redis a fraction of a millisecond.
const idsPerCommand = 100

/**
 * KEYS: the sums of a month, then for each key its hash of that month in format 1. ARGV: the expiry, the number of days, the
 * days of the month, then the ids of the keys. Raises the sums of these days to those of format 1; returns how many it raised.
 */
const takeOverScript = `${recordsLua}${sumsLua}
local days, added = tonumber(ARGV[2]), 0
for i = 2, #KEYS do
  local id, former = ARGV[days + i + 1], pcall('HMGET', KEYS[i], unpack(ARGV, 3, days + 2))
  if former.err and not isOtherType(former) then return former end
  local sums = not former.err and call('HGET', KEYS[1], id) or ''
  local more = ''
  for day = 1, former.err and 0 or days do
    local sum, mark = whole(former[day]), ARGV[day + 2] .. ':'
    if sum and sum > (sumIn(sums, mark) or 0) then
      sums = otherSums(sums, mark) .. mark .. text('%d', sum)
      more = sums
      added = added + 1
    end
  end
  if more ~= '' then call('HSET', KEYS[1], id, more) end
end
if added > 0 then
  ${keepUntilLua('KEYS[1]', 'ARGV[1]')}
end
return added`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaTakeOver(keys: number, ...keysAndValues: (string | number)[]): Result<number, Context>
  }
}

/** @param place as in `RedisFormat.check`. The result throws InputError while a gateway of an earlier version is alive */
export const redisTakeOver = (
  redis: RedisClient,
  names: RedisKeyNames,
  format: RedisFormat,
  place: string,
): ((keepUsageForMs: number) => Promise<void>) => {
  redis.defineCommand('abohawaTakeOver', { lua: takeOverScript })
  const partitions = usagePartitionsOn(redis)

  // Each gateway that counts has an entry there and removes it when it stops. The entries of gateways that were killed expire together,
  // by the clock of Redis, so that no clock of a gateway matters.
  const countAlive = async (): Promise<number> => {
    try {
      return await redis.zcard(names.settings)
    } catch (error) {
      if (isWrongType(error)) return 0
      throw error
    }
  }
  const takeOver = async (
    keyIds: readonly string[],
    days: readonly string[],
    keepUntil: number,
  ): Promise<void> => {
    const months = [...Map.groupBy(days, day => day.slice(0, 7))]
    const ofPartitions = [...Map.groupBy(keyIds, partitions.of)]
    for (const [month, ofMonth] of months)
      for (const [partition, ids] of ofPartitions)
        for (let i = 0; i < ids.length; i += idsPerCommand) {
          const part = ids.slice(i, i + idsPerCommand)
          await redis.abohawaTakeOver(
            part.length + 1,
            names.monthUsage(partition, month),
            ...part.map(id => names.formerMonthUsage(id, month)),
            keepUntil + keepMonthForMs,
            ofMonth.length,
            ...ofMonth.map(day => day.slice(8)),
            ...part,
          )
        }
  }

  /** Whether the counts are of format 1, and nobody counts there. */
  const isLeft = async (): Promise<boolean> => {
    // Before the format: a gateway of this version has written that before its first heartbeat.
    const alive = await countAlive()
    if (!(await format.isFormer())) return false
    if (alive === 0) return true
    throw new InputError(
      `${place}, where ${alive === 1 ? 'a gateway' : `${alive} gateways`} of an earlier version still count${alive === 1 ? 's' : ''} in ` +
        'format 1: stop every gateway of that version, then start this one (docs/operating/install.md)',
    )
  }

  return async keepUsageForMs => {
    if (!(await isLeft())) return
    const [seconds] = await redis.time()
    const now = wholeFrom(Number(seconds)) * 1000
    // In any time zone, today is among these days.
    const today = Math.floor(now / utcDayMs)
    const days = [-1, 0, 1].map(offset => dayOfNumber(today + offset))
    for (let from = 0; ; from += idsPerRead) {
      const ids = await redis.zrange(names.keys, String(from), String(from + idsPerRead - 1))
      await takeOver(ids, days, now + keepUsageForMs)
      if (ids.length < idsPerRead) break
    }
    // An import by a command of this version may have raised counts there; they begin again at the sums.
    await Promise.all(
      partitions.all.map(partition => redis.unlink(...days.map(day => names.dayUsage(partition, day)))),
    )
    // One of that version may have begun meanwhile, and another of this one may be done.
    if (!(await isLeft())) return
    await format.mark()
  }
}
