// Usage detail in Redis: a hash per partition and day, with a field per key: `12 2xx weather,3 4xx weather`.

import { utcDayMs } from '../../common/calendar.ts'
import { answerCountOf, forMessage, maxCounted, refuseRecord } from '../records.ts'
import type { UsageDetailStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionsOn } from './key-names.ts'
import { recordsLua, scriptOn } from './server.ts'
import { keepUntilLua } from './usage-scripts.ts'

// A command of so many keys takes Redis half a millisecond.
const keysPerCommand = 100

// The detail of a day is dropped with the counts, without blocking Redis; the expiry is for a hash that no gateway dropped.
const keepLongerMs = utcDayMs

/**
 * KEYS: the detail of a day. ARGV: its expiry, then for each key its id and the counts to add. Counts and expiry in one step, so
 * that no hash lacks an expiry. What is no count begins again.
 */
const addScript = `${recordsLua}
local ids, toSet = {}, {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local found = call('HMGET', KEYS[1], unpack(ids))
for i = 1, #ids do
  local counts, names = {}, {}
  for each in string.gmatch((found[i] or '') .. ',' .. ARGV[2 * i + 1], '[^,]+') do
    local count, name = string.match(each, '^(%d+) (.+)$')
    count = whole(count)
    if count then
      if not counts[name] then names[#names + 1] = name end
      counts[name] = math.min(${maxCounted}, (counts[name] or 0) + count)
    end
  end
  for n = 1, #names do names[n] = text('%d %s', counts[names[n]], names[n]) end
  toSet[2 * i - 1], toSet[2 * i] = ids[i], table.concat(names, ',')
end
if call('HSET', KEYS[1], unpack(toSet)) > 0 then
  ${keepUntilLua('KEYS[1]', 'ARGV[1]')}
end`

export const redisUsageDetail = ({ redis, names, observer }: RedisParts): UsageDetailStore => {
  const add = scriptOn<null>(redis, 'abohawaAddDetail', 1, addScript)
  const partitions = usagePartitionsOn(redis)
  return {
    addDetail: async entries => {
      const hashes = Map.groupBy(entries, ({ keyId, day }) => names.usageDetail(partitions.of(keyId), day))
      for (const [name, ofHash] of hashes) {
        const until = Math.max(...ofHash.map(({ keepUntil }) => keepUntil)) + keepLongerMs
        const byKey = [...Map.groupBy(ofHash, ({ keyId }) => keyId)]
        // One after the other: neither Redis nor this process has a long turn.
        for (let i = 0; i < byKey.length; i += keysPerCommand) {
          const idsAndCounts = byKey
            .slice(i, i + keysPerCommand)
            .flatMap(([keyId, counts]) => [
              keyId,
              counts.map(({ count, statusClass, endpoint }) => `${count} ${statusClass} ${endpoint}`).join(),
            ])
          await add(name, until, ...idsAndCounts)
        }
      }
    },
    detailOn: async (keyId, day) => {
      const name = names.usageDetail(partitions.of(keyId), day)
      return ((await redis.hget(name, keyId)) ?? '').split(',').flatMap(each => {
        if (each === '') return []
        const [count = '', statusClass = '', ...endpoint] = each.split(' ')
        const counted = answerCountOf(statusClass, endpoint.join(' '), count)
        if (counted) return [counted]
        const fault = `its counts of ${forMessage(keyId)} have "${forMessage(each)}"`
        refuseRecord(observer, 'usage_detail', name, fault)
        return []
      })
    },
  }
}
