// Stores usage detail in Redis: a hash per key and day, with a field per endpoint and status class. A damaged field begins
// again with the added count. The gateway counts in metering/usage-detail.ts.

import type { Result } from 'ioredis'
import { answerCountOf, mostCounted, shown } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { hashReader, pairsOf, recordsLua } from './redis-records.ts'
import type { UsageDetailStore } from './store.ts'

// Counts and expiry in one step, so that no hash lacks an expiry. Returns how many damaged counts began again.
const addScript = `${recordsLua}
local reset = 0
for i = 2, #ARGV, 2 do
  local sum = pcall('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  if type(sum) == 'table' or sum < 0 or sum > ${mostCounted} then
    if type(sum) == 'table' and isOtherType(sum) then call('DEL', KEYS[1]) end
    call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    reset = reset + 1
  end
end
call('PEXPIREAT', KEYS[1], ARGV[1])
return reset`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaAddDetail(key: string, keepUntil: number, ...counts: (string | number)[]): Result<number, Context>
  }
}

export const redisUsageDetail = ({ redis, names, attempt, observer }: RedisParts): UsageDetailStore => {
  redis.defineCommand('abohawaAddDetail', { numberOfKeys: 1, lua: addScript })
  const readHash = hashReader(redis)
  const refuse = (name: string, fault: string) =>
    observer.recordRefused({ record: 'usage_detail', name: shown(name), fault })
  return {
    addDetail: entries =>
      attempt(async () => {
        const hashes = Map.groupBy(entries, ({ keyId, day }) => names.usageDetail(keyId, day))
        await Promise.all(
          [...hashes].map(async ([name, counts]) => {
            const reset = await redis.abohawaAddDetail(
              name,
              Math.max(...counts.map(({ keepUntil }) => keepUntil)),
              ...counts.flatMap(({ endpoint, statusClass, count }) => [`${statusClass} ${endpoint}`, count]),
            )
            if (reset > 0) refuse(name, `${reset} of its counts were no whole numbers, and began again`)
          }),
        )
      }),
    detailOn: (keyId, day) =>
      attempt(async () => {
        const name = names.usageDetail(keyId, day)
        const found = await readHash(name)
        if (typeof found === 'string') {
          refuse(name, found)
          return []
        }
        return pairsOf(found).flatMap(([field, text]) => {
          const [statusClass = '', ...endpoint] = field.split(' ')
          const counted = answerCountOf(statusClass, endpoint.join(' '), text)
          if (counted) return [counted]
          refuse(name, `its field "${shown(field)}" is "${shown(text)}"`)
          return []
        })
      }),
  }
}
