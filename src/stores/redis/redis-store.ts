// The store for a fleet: Redis through ioredis. Every step touches one slot, so it is atomic on a single server and on a
// cluster. All keys begin with the configured prefix; counts and bytes expire. Fails fast: commands time out, and nothing
// queues while Redis is unavailable.

import { ReplyError } from 'ioredis'
import { AbohawaError, InputError, messageOf } from '../../common/errors.ts'
import { forMessage, type RecordObserver, unobserved } from '../records.ts'
import { type Store, StoreError } from '../store.ts'
import { newerFormat, storeFormat } from '../store-format.ts'
import { redisBytes } from './bytes.ts'
import {
  connect,
  isOfStore,
  listenerOn,
  memoryOf,
  ping,
  type RedisObserver,
  type RedisOutcome,
  reasonAway,
} from './connection.ts'
import { checkCountPlaces } from './count-places.ts'
import { redisFleet } from './fleet.ts'
import { type RedisKeyNames, redisKeyNames } from './key-names.ts'
import { redisKeys } from './keys.ts'
import type { RedisOptions } from './place.ts'
import { noConnection, type RedisClient, redisReason } from './server.ts'
import { redisSpending } from './spending.ts'
import { createRedisSubscriptions } from './subscriptions.ts'
import { redisUsage } from './usage.ts'
import { redisUsageDetail } from './usage-detail.ts'

const namesOf = (options: RedisOptions) => redisKeyNames(options.prefix)

/**
 * Reads the number of the store's format, which is written with the first record and with each heartbeat where there is none.
 * @throws InputError when a newer version wrote what is there, or the number is none
 */
export const checkRedisFormat = async (redis: RedisClient, options: RedisOptions): Promise<void> => {
  const { url, urlName = 'redis.url' } = options
  const { format } = namesOf(options)
  const place = `${urlName} names ${new URL(url).host}`
  const found = await redis.getrange(format, 0, -1)
  if (found === '') return
  if (!/^[1-9]\d{0,5}$/.test(found))
    throw new InputError(
      `${place}, where ${format} must be the number of a format, got ${forMessage(found)}; this version writes ${storeFormat}`,
    )
  if (Number(found) > storeFormat) throw newerFormat(place, Number(found))
}

/** Writes the format where there is none; never fails, because it is no part of the record that it comes with. */
const markFormat = async (redis: RedisClient, names: RedisKeyNames): Promise<void> => {
  await redis.set(names.format, storeFormat, 'NX').catch(() => {})
}

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
      const reason = redisReason(cause, options.commandTimeoutMs)
      const why = reason === noConnection ? (reasonAway(redis) ?? reason) : reason
      throw new StoreError(`Redis failed: ${why}`, { cause })
    } finally {
      observer.redisRequest?.(outcomeOf(failed), performance.now() - startedAt)
    }
  }
  /** The same steps, each of which is attempted. */
  const attempted = <Steps extends object>(steps: Steps): Steps =>
    Object.fromEntries(
      Object.entries(steps).map(([name, step]) => [
        name,
        (...given: unknown[]) => attempt(async () => step(...given)),
      ]),
    ) as Steps
  const parts = { redis, names, observer: records }
  const subscriptions = createRedisSubscriptions(
    names.usageChannel,
    () => listenerOn(redis),
    listener => isOfStore(redis, listener),
    messagesFail,
  )

  const { partitionOf, onUsage, usageMessagesArrive, ...usage } = redisUsage(parts, subscriptions)
  const steps = attempted({
    ...redisKeys(parts),
    ...usage,
    ...redisUsageDetail(parts),
    ...redisBytes(parts),
    ...redisFleet(parts),
    ...redisSpending(parts),
    ping: () => ping(redis),
    size: () => memoryOf(redis),
  })
  const close = async () => {
    subscriptions.close()
    // Waits for outstanding replies; a broken connection is dropped.
    await redis.quit().catch(() => redis.disconnect())
  }
  try {
    await attempt(async () => {
      await checkRedisFormat(redis, options)
      await checkCountPlaces(parts, options)
    })
  } catch (error) {
    await close()
    throw error
  }

  return {
    kind: 'redis',
    partitionOf,
    onUsage,
    usageMessagesArrive,
    ...steps,
    // The first write of a command that makes keys.
    ensureSubscriber: async subscriber => {
      await markFormat(redis, names)
      return steps.ensureSubscriber(subscriber)
    },
    heartbeat: async beat => (await Promise.all([steps.heartbeat(beat), markFormat(redis, names)]))[0],
    close,
  }
}

/** @param failed what a request was rejected with; undefined when it was not */
const outcomeOf = (failed: unknown): RedisOutcome => {
  if (failed === undefined) return 'ok'
  if (failed instanceof ReplyError || failed instanceof AbohawaError) return 'reply'
  return messageOf(failed) === 'Command timed out' ? 'timeout' : 'connection'
}
