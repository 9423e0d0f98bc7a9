// The store for a fleet: Redis through ioredis. Every step touches one slot, so it is atomic on a single server and on
// a cluster alike. All keys begin with the configured prefix; counts and bytes carry an expiry. Fails fast: commands
// have a timeout and nothing queues up while Redis is away.

import { AbohawaError, messageOf } from '../errors.ts'
import { mostBytesRead, type RecordObserver, unobserved } from './records.ts'
import { connect, listenerOn, ping, type RedisObserver, type RedisOptions } from './redis-connection.ts'
import { redisFleet } from './redis-fleet.ts'
import { redisFlights } from './redis-flights.ts'
import { redisKeyNames } from './redis-key-names.ts'
import { redisKeys } from './redis-keys.ts'
import { createRedisListening } from './redis-listening.ts'
import { isWrongType } from './redis-records.ts'
import { redisSpending } from './redis-spending.ts'
import { redisUsage } from './redis-usage.ts'
import { redisUsageDetail } from './redis-usage-detail.ts'
import { type Store, StoreError } from './store.ts'

/** Connects. @throws InputError when Redis can't be reached at the start */
export const openRedisStore = async (
  options: RedisOptions,
  observer: RedisObserver & Partial<RecordObserver>,
): Promise<Store> => {
  const records = { ...unobserved, ...observer }
  // On a cluster the connection that listens may be whole while a master is lost.
  const redis = await connect(options, {
    redisAway: reason => {
      listening.doubt()
      observer.redisAway(reason)
    },
    redisBack: () => {
      listening.doubt()
      observer.redisBack()
    },
  })
  const names = redisKeyNames(options.prefix)
  const attempt = async <Value>(step: () => Promise<Value>): Promise<Value> => {
    try {
      return await step()
    } catch (cause) {
      if (cause instanceof AbohawaError) throw cause
      throw new StoreError(`Redis failed: ${messageOf(cause)}`, { cause })
    }
  }
  const parts = { redis, names, attempt, observer: records }
  const listening = createRedisListening(() => listenerOn(redis), records)

  const { writeFenced, ...flights } = redisFlights(parts, listening.listen)

  return {
    kind: 'redis',
    ...redisKeys(parts),
    ...redisUsage(parts, listening.listen),
    ...redisUsageDetail(parts),
    readBytes: (name, most = mostBytesRead) =>
      attempt(async () => {
        try {
          // One byte more than wanted says that there are more, however many.
          const bytes = await redis.getrangeBuffer(names.bytes(name), 0, most)
          if (bytes.length === 0) return undefined
          return bytes.length > most ? 'too_large' : bytes
        } catch (error) {
          if (isWrongType(error)) return 'wrong_type'
          throw error
        }
      }),
    writeBytes: async (name, bytes, expiresAt, token) =>
      token !== undefined
        ? writeFenced(name, bytes, expiresAt, token)
        : attempt(async () => {
            await redis.set(names.bytes(name), bytes, 'PXAT', expiresAt)
            return true
          }),
    deleteBytes: entries =>
      attempt(async () => {
        // One by one, because on a cluster they lie in different slots; they travel together all the same.
        const removed = await Promise.all(entries.map(name => redis.unlink(names.bytes(name))))
        return removed.reduce((sum, count) => sum + count, 0)
      }),
    ...flights,
    ...redisFleet(parts),
    ...redisSpending(parts),
    ping: () => attempt(() => ping(redis)),
    close: async () => {
      listening.close()
      // Waits for replies that are under way; a connection that is down is simply dropped.
      await redis.quit().catch(() => redis.disconnect())
    },
  }
}
