// The store for a fleet: Redis through ioredis. Every step touches one slot, so it is atomic on a single server and on a
// cluster. All keys begin with the configured prefix; counts and bytes expire. Fails fast: commands time out, and nothing
// queues while Redis is unavailable. Key names are in key-names.ts.

import { ReplyError } from 'ioredis'
import { AbohawaError } from '../../common/errors.ts'
import { maxBytesRead, type RecordObserver, unobserved } from '../records.ts'
import { type Store, StoreError } from '../store.ts'
import {
  connect,
  isOfStore,
  listenerOn,
  memoryOf,
  outcomeOf,
  ping,
  type RedisClient,
  type RedisObserver,
} from './connection.ts'
import { redisFleet } from './fleet.ts'
import { checkFormat, markFormat } from './format.ts'
import { redisKeyNames } from './key-names.ts'
import { redisKeys } from './keys.ts'
import { redisLeases } from './leases.ts'
import type { RedisOptions } from './place.ts'
import { redisReason } from './reason.ts'
import { isWrongType } from './records.ts'
import { redisSpending } from './spending.ts'
import { createRedisSubscriptions } from './subscriptions.ts'
import { redisUsage } from './usage.ts'
import { redisUsageDetail } from './usage-detail.ts'

const namesOf = (options: RedisOptions) => redisKeyNames(options.prefix)

const placeOf = ({ url, urlName = 'redis.url' }: RedisOptions): string =>
  `${urlName} names ${new URL(url).host}`

/** Reads the number of the store's format. @throws InputError when a newer version wrote what is there */
export const checkRedisFormat = (redis: RedisClient, options: RedisOptions): Promise<void> =>
  checkFormat(redis, namesOf(options), placeOf(options))

/** Connects. @throws InputError when Redis can't be reached at the start, or a newer version wrote what is there */
export const openRedisStore = async (
  options: RedisOptions,
  observer: RedisObserver & Partial<RecordObserver>,
): Promise<Store> => {
  const records = { ...unobserved, ...observer }
  let isAway = false
  let messageFault: string | null = null
  const messagesFail = (reason: Error | null): void => {
    // A server that is away is reported as such. Where it answers, a connection that it refuses may also break before it says why.
    if (reason && (isAway || (messageFault !== null && !(reason instanceof ReplyError)))) return
    const fault = reason && redisReason(reason, options.commandTimeoutMs)
    if (fault === messageFault) return
    messageFault = fault
    observer.redisMessages?.(fault)
  }
  // On a cluster the subscribed connection may stay up while a master is lost.
  const redis = await connect(options, {
    redisAway: reason => {
      // First, because it knows why; the subscribers only notice it.
      isAway = true
      observer.redisAway(reason)
      subscriptions.markLost()
    },
    redisBack: () => {
      isAway = false
      subscriptions.markLost()
      observer.redisBack()
    },
  })
  const names = namesOf(options)
  const attempt = async <Value>(step: () => Promise<Value>): Promise<Value> => {
    const startedAt = performance.now()
    let failed: unknown
    try {
      return await step()
    } catch (cause) {
      failed = cause
      if (cause instanceof AbohawaError) throw cause
      throw new StoreError(`Redis failed: ${redisReason(cause, options.commandTimeoutMs)}`, { cause })
    } finally {
      observer.redisRequest?.(outcomeOf(failed), performance.now() - startedAt)
    }
  }
  const parts = { redis, names, attempt, observer: records }
  const subscriptions = createRedisSubscriptions(
    () => listenerOn(redis),
    listener => isOfStore(redis, listener),
    { ...records, failed: messagesFail },
  )

  const { writeAsHolder, ...leases } = redisLeases(parts)
  const keys = redisKeys(parts)
  const fleet = redisFleet(parts)
  const close = async () => {
    subscriptions.close()
    // Waits for outstanding replies; a broken connection is dropped.
    await redis.quit().catch(() => redis.disconnect())
  }
  try {
    await attempt(() => checkFormat(redis, names, placeOf(options)))
  } catch (error) {
    await close()
    throw error
  }

  const isUsed = () =>
    attempt(async () => {
      // One command each: on a cluster they lie in different slots.
      const marks = [names.keys, names.instances, names.changeRecords('keys')]
      return (await Promise.all(marks.map(mark => redis.exists(mark)))).includes(1)
    })

  return {
    kind: 'redis',
    ...keys,
    // The first write of a command that makes keys.
    ensureSubscriber: async subscriber => {
      await markFormat(redis, names)
      return keys.ensureSubscriber(subscriber)
    },
    ...redisUsage(parts, subscriptions),
    ...redisUsageDetail(parts),
    readBytes: (name, most = maxBytesRead) =>
      attempt(async () => {
        try {
          // One byte more than allowed shows that the value is larger.
          const bytes = await redis.getrangeBuffer(names.bytes(name), 0, most)
          if (bytes.length === 0) return undefined
          return bytes.length > most ? 'too_large' : bytes
        } catch (error) {
          if (isWrongType(error)) return 'wrong_type'
          throw error
        }
      }),
    writeBytes: async (name, bytes, expiresAt, holder) =>
      holder !== undefined
        ? writeAsHolder(name, bytes, expiresAt, holder)
        : attempt(async () => {
            await redis.set(names.bytes(name), bytes, 'PXAT', expiresAt)
            return true
          }),
    deleteBytes: entries =>
      attempt(async () => {
        // One command per key, because on a cluster they lie in different slots.
        const removed = await Promise.all(entries.map(name => redis.unlink(names.bytes(name))))
        return removed.reduce((sum, count) => sum + count, 0)
      }),
    ...leases,
    ...fleet,
    heartbeat: async beat => (await Promise.all([fleet.heartbeat(beat), markFormat(redis, names)]))[0],
    ...redisSpending(parts),
    ping: () => attempt(() => ping(redis)),
    isUsed,
    size: () => attempt(() => memoryOf(redis)),
    close,
  }
}
