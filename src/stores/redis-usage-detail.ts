// How keys were answered, counted in Redis: a hash per key and day, with a field per endpoint and class of status.

import type { Result } from 'ioredis'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { UsageDetailStore } from './store.ts'

// Counts and expiry in one step, so that no hash is ever without one.
const addScript = `
for i = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return redis.call('PEXPIREAT', KEYS[1], ARGV[1])`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaAddDetail(key: string, keepUntil: number, ...counts: (string | number)[]): Result<number, Context>
  }
}

export const redisUsageDetail = (
  redis: RedisClient,
  key: (...parts: string[]) => string,
  attempt: Attempt,
): UsageDetailStore => {
  redis.defineCommand('abohawaAddDetail', { numberOfKeys: 1, lua: addScript })
  const nameOf = (keyId: string, day: string) => key('usage-detail', `{${keyId}}`, day)
  return {
    addDetail: entries =>
      attempt(async () => {
        const hashes = Map.groupBy(entries, ({ keyId, day }) => nameOf(keyId, day))
        await Promise.all(
          [...hashes].map(([name, counts]) =>
            redis.abohawaAddDetail(
              name,
              Math.max(...counts.map(({ keepUntil }) => keepUntil)),
              ...counts.flatMap(({ endpoint, statusClass, count }) => [`${statusClass} ${endpoint}`, count]),
            ),
          ),
        )
      }),
    detailOn: (keyId, day) =>
      attempt(async () =>
        Object.entries(await redis.hgetall(nameOf(keyId, day))).map(([field, count]) => {
          const [statusClass = '', ...endpoint] = field.split(' ')
          return { endpoint: endpoint.join(' '), statusClass, count: Number(count) }
        }),
      ),
  }
}
