// The number of the store's format in Redis: read before anything else, written with the first record. A store without one is
// of format 1, as every version before the number wrote it. In format 2 the counts of many keys share a hash;
// take-over.ts leads from 1 to 2.

import type { Result } from 'ioredis'
import { InputError } from '../../errors.ts'
import { shown } from '../records.ts'
import { newerFormat } from '../store-format.ts'
import type { RedisClient } from './connection.ts'
import type { RedisKeyNames } from './key-names.ts'
import { isWrongType, recordsLua } from './records.ts'

/** The format that this version writes. */
const known = 2
const longestNumber = 6

// Never lowers the number. ARGV: the number.
const markScript = `${recordsLua}
local found = pcall('GETRANGE', KEYS[1], 0, ${longestNumber})
if found == '' or (type(found) == 'string' and whole(found) and whole(found) < tonumber(ARGV[1])) then
  call('SET', KEYS[1], ARGV[1])
end
return 0`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaMark(key: string, number: number): Result<number, Context>
  }
}

export type RedisFormat = {
  /** @param place `redis.url names redis:6379`. @throws InputError when a newer version wrote the store, or the number is none */
  check(place: string): Promise<void>
  /** Whether the store is of an earlier format, or new. */
  isFormer(): Promise<boolean>
  /** Writes the number where there is none or a smaller one; never fails, because it is no part of the record that it comes with. */
  mark(): Promise<void>
}

export const redisFormat = (redis: RedisClient, names: RedisKeyNames): RedisFormat => {
  redis.defineCommand('abohawaMark', { numberOfKeys: 1, lua: markScript })
  return {
    check: async place => {
      const found = await numberAt(redis, names.format)
      if (found === '') return
      if (!/^[1-9]\d*$/.test(found) || found.length > longestNumber)
        throw new InputError(
          `${place}, where ${names.format} is ${shown(found)}, but must be the number of a format; this version writes ${known}`,
        )
      if (Number(found) > known) throw newerFormat(place, Number(found), known)
    },
    isFormer: async () => Number(await numberAt(redis, names.format)) < known,
    mark: () =>
      redis.abohawaMark(names.format, known).then(
        () => {},
        () => {},
      ),
  }
}

const numberAt = async (redis: RedisClient, name: string): Promise<string> => {
  try {
    return await redis.getrange(name, 0, longestNumber)
  } catch (error) {
    if (isWrongType(error)) return 'of another type'
    throw error
  }
}
