// Where the number of the store's format is in Redis: read when the store is opened, written with the first record and with
// each heartbeat where there is none.

import { InputError } from '../../common/errors.ts'
import { shown } from '../records.ts'
import { newerFormat, storeFormat } from '../store-format.ts'
import type { RedisClient } from './connection.ts'
import type { RedisKeyNames } from './key-names.ts'
import { isWrongType } from './records.ts'

const longestNumber = 6

/** @param place `redis.url names redis:6379`. @throws InputError when a newer version wrote the store, or the number is none */
export const checkFormat = async (redis: RedisClient, names: RedisKeyNames, place: string): Promise<void> => {
  const found = await numberAt(redis, names.format)
  if (found === '') return
  if (!/^[1-9]\d*$/.test(found) || found.length > longestNumber)
    throw new InputError(
      `${place}, where ${names.format} is ${shown(found)}, but must be the number of a format; this version writes ${storeFormat}`,
    )
  if (Number(found) > storeFormat) throw newerFormat(place, Number(found))
}

/** Writes the number where there is none; never fails, because it is no part of the record that it comes with. */
export const markFormat = async (redis: RedisClient, names: RedisKeyNames): Promise<void> => {
  await redis.set(names.format, storeFormat, 'NX').catch(() => {})
}

const numberAt = async (redis: RedisClient, name: string): Promise<string> => {
  try {
    return await redis.getrange(name, 0, longestNumber)
  } catch (error) {
    if (isWrongType(error)) return 'of another type'
    throw error
  }
}
