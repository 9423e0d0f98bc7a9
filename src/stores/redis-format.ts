// The number of the store's format in Redis: read before anything else, written with the first record. A store without one is
// of format 1, as every version before the number wrote it.

import { InputError } from '../errors.ts'
import { shown } from './records.ts'
import type { RedisClient } from './redis-connection.ts'
import type { RedisKeyNames } from './redis-key-names.ts'
import { isWrongType } from './redis-records.ts'
import { newerFormat } from './store-format.ts'

/** The format that this version writes. */
const known = 1
const longestNumber = 6

export type RedisFormat = {
  /** @param place `redis.url names redis:6379`. @throws InputError when a newer version wrote the store, or the number is none */
  check(place: string): Promise<void>
  /** Writes the number where there is none; never fails, because it is no part of the record that it comes with. */
  mark(): Promise<void>
}

export const redisFormat = (redis: RedisClient, names: RedisKeyNames): RedisFormat => ({
  check: async place => {
    const found = await numberAt(redis, names.format)
    if (found === '') return
    if (!/^[1-9]\d*$/.test(found) || found.length > longestNumber)
      throw new InputError(
        `${place}, where ${names.format} is ${shown(found)}, but must be the number of a format; this version writes ${known}`,
      )
    if (Number(found) > known) throw newerFormat(place, Number(found), known)
  },
  mark: () =>
    redis.setnx(names.format, String(known)).then(
      () => {},
      () => {},
    ),
})

const numberAt = async (redis: RedisClient, name: string): Promise<string> => {
  try {
    return await redis.getrange(name, 0, longestNumber)
  } catch (error) {
    if (isWrongType(error)) return 'of another type'
    throw error
  }
}
