// Stores usage detail in Redis: a hash per partition and day, with a field per key: `12 2xx weather,3 4xx weather`. A damaged
// count begins again with the added count. The gateway counts in keys/usage-detail.ts.

import { utcDayMs } from '../../common/calendar.ts'
import { answerCountOf, maxCounted, shown } from '../records.ts'
import type { AnswerCount, UsageDetailStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionsOn } from './key-names.ts'
import { fieldReader, recordsLua, scriptOn } from './records.ts'
import { keepUntilLua } from './usage-scripts.ts'

// A command of so many keys takes Redis half a millisecond.
const keysPerCommand = 100

// Some hundred endpoints and status classes.
const longestCounts = 4_096

// The detail of a day is dropped with the counts, without blocking Redis; the expiry is for a hash that no gateway dropped.
const keepLongerMs = utcDayMs

/**
 * KEYS: the detail of a day. ARGV: its expiry, then for each key its id and the counts to add. Counts and expiry in one step, so
 * that no hash lacks an expiry. Returns how many damaged counts began again.
 */
const addScript = `${recordsLua}
local ids, toSet, reset = {}, {}, 0
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local found = pcall('HMGET', KEYS[1], unpack(ids))
if found.err then
  if not isOtherType(found) then return found end
  call('UNLINK', KEYS[1])
  found, reset = {}, 1
end
for i = 1, #ids do
  local counts, names, known = {}, {}, found[i] or ''
  if #known > ${longestCounts} then known, reset = '', reset + 1 end
  for each in string.gmatch(known, '[^,]+') do
    local count, name = string.match(each, '^(%d+) (.+)$')
    count = whole(count)
    if not count then
      reset = reset + 1
    elseif not counts[name] then
      counts[name], names[#names + 1] = count, name
    end
  end
  for each in string.gmatch(ARGV[2 * i + 1], '[^,]+') do
    local count, name = string.match(each, '^(%d+) (.+)$')
    if not counts[name] then names[#names + 1] = name end
    counts[name] = math.min(${maxCounted}, (counts[name] or 0) + tonumber(count))
  end
  for n = 1, #names do names[n] = text('%d %s', counts[names[n]], names[n]) end
  toSet[2 * i - 1], toSet[2 * i] = ids[i], table.concat(names, ',')
end
if call('HSET', KEYS[1], unpack(toSet)) > 0 then
  ${keepUntilLua('KEYS[1]', 'ARGV[1]')}
end
return reset`

export const redisUsageDetail = ({ redis, names, observer }: RedisParts): UsageDetailStore => {
  const add = scriptOn<number>(redis, 'abohawaAddDetail', 1, addScript)
  const readField = fieldReader(redis)
  const partitions = usagePartitionsOn(redis)
  const refuse = (name: string, fault: string) =>
    observer.recordRefused({ record: 'usage_detail', name: shown(name), fault })

  /** The counts of a key and day by that day's hash of its partition. */
  const readCounts = async (keyId: string, day: string): Promise<AnswerCount[]> => {
    const name = names.usageDetail(partitions.of(keyId), day)
    const found = await readField(name, keyId, longestCounts)
    if (typeof found !== 'string') {
      refuse(name, found[0])
      return []
    }
    return found.split(',').flatMap(each => {
      if (each === '') return []
      const [count = '', statusClass = '', ...endpoint] = each.split(' ')
      const counted = answerCountOf(statusClass, endpoint.join(' '), count)
      if (counted) return [counted]
      refuse(name, `its counts of ${shown(keyId)} have "${shown(each)}"`)
      return []
    })
  }

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
          const reset = await add(name, until, ...idsAndCounts)
          if (reset > 0) refuse(name, `${reset} of its counts were no whole numbers, and began again`)
        }
      }
    },
    detailOn: (keyId, day) => readCounts(keyId, day),
  }
}
