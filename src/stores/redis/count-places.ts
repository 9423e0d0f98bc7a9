// Refuses a Redis whose counts another mode wrote. A single server has the counts of all keys in one partition, a cluster in four:
// with such a snapshot in the other mode, used-up keys would begin at 0 again, and nobody would notice.

import { dayOfNumber, daysUpTo, utcDayMs } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionOf, usagePartitionsOn } from './key-names.ts'
import type { RedisOptions } from './place.ts'
import { redisTime } from './server.ts'

const daysKept = 400
const idsPerStep = 1_000
const [first = 0, ...others] = usagePartitionsOn({ isCluster: true }).all

/** @throws InputError when the counts lie where another mode keeps them */
export const checkCountPlaces = async (
  { redis, names }: Pick<RedisParts, 'redis' | 'names'>,
  { url, urlName = 'redis.url' }: RedisOptions,
): Promise<void> => {
  // Local days may be ahead of UTC days.
  const tomorrow = dayOfNumber(Math.floor((await redisTime(redis)) / utcDayMs) + 1)
  const months = [...new Set(daysUpTo(tomorrow, daysKept).map(day => day.slice(0, 7)))]
  const has = async (keys: readonly string[]): Promise<boolean> => (await redis.exists(...keys)) > 0
  const hasMonths = (partition: number) => has(months.map(month => names.monthUsage(partition, month)))
  const refused = (written: string, serve: string, into: string): InputError =>
    new InputError(
      `${urlName} names ${new URL(url).host}, whose counts were written by ${written}, so all keys would begin at 0 again; ` +
        `serve the snapshot with ${serve}, and copy it into ${into} with \`abohawa store copy\` (docs/operating/keys.md)`,
    )

  if (!redis.isCluster) {
    // Counts of earlier days no longer change.
    const days = daysUpTo(tomorrow, 3)
    if (await has(others.flatMap(partition => days.map(day => names.dayUsage(partition, day)))))
      throw refused('a cluster', 'a cluster', 'an empty server')
    return
  }
  const [ofFirst, ...ofOthers] = await Promise.all([first, ...others].map(hasMonths))
  if (!ofFirst || ofOthers.includes(true)) return
  // The cluster may have few keys, all of the first partition.
  for (let from = 0; ; from += idsPerStep) {
    const ids = await redis.zrange(names.keys, String(from), String(from + idsPerStep - 1))
    const elsewhere = ids.filter(id => usagePartitionOf(id) !== first)
    if (elsewhere.length > 0)
      for (const month of months)
        if ((await redis.hmget(names.monthUsage(first, month), ...elsewhere)).some(sum => sum !== null))
          throw refused('a single server', 'a single server', 'an empty cluster')
    if (ids.length < idsPerStep) return
  }
}
