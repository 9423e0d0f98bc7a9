// The token buckets of keys in Redis: one text for each key, with what each of its buckets held at an instant of Redis' own clock.
// It expires when all of them are full again. A text that can't be read is as one that is not there.

import { StoreError } from '../store.ts'
import type { TokenStore } from '../token-bucket.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionsOn } from './key-names.ts'
import { recordsLua, scriptOn } from './records.ts'

// Beyond the instant at which the buckets are full.
const keepMs = 1_000

/**
 * KEYS: the buckets of a key, as `1795284000123.456 second:3.25 minute:299`. ARGV: wanted, ahead and share, then of each bucket its
 * name, capacity, tokens per ms, and the tokens that were spent without the store. Returns the granted tokens and what each bucket
 * has left. What refills and what is granted
 * is that of token-bucket.ts.
 */
const takeScript = `${recordsLua}
local found = pcall('GET', KEYS[1])
if type(found) == 'table' and not isOtherType(found) then return found end
local value = type(found) == 'string' and found or ''
local wanted, ahead, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local elapsed = math.max(0, now - (tonumber(string.match(value, '^[%d.]+')) or now))
local held, tokens, free, fullIn = {}, {}, math.huge, 0
for i = 4, #ARGV, 4 do
  local capacity = tonumber(ARGV[i + 1])
  local before = tonumber(string.match(value, ' ' .. ARGV[i] .. ':([%d.]+)')) or capacity
  local refilled = math.min(capacity, floor((before + elapsed * tonumber(ARGV[i + 2])) * 1e9 + 0.5) / 1e9)
  local left = math.max(0, math.min(capacity, refilled - tonumber(ARGV[i + 3])))
  tokens[#tokens + 1], free = left, math.min(free, floor(left))
end
local granted = free
if free >= wanted then granted = wanted + floor(math.min(ahead, (free - wanted) * share)) end
local kept = { text('%.3f', now) }
for i = 1, #tokens do
  local n = 4 * i
  local left = tokens[i] - granted
  held[i] = text('%.9f', left)
  kept[i + 1] = ARGV[n] .. ':' .. held[i]
  fullIn = math.max(fullIn, (ARGV[n + 1] - left) / ARGV[n + 2])
end
call('SET', KEYS[1], table.concat(kept, ' '), 'PX', text('%d', math.ceil(fullIn) + ${keepMs}))
return text('%d ', granted) .. table.concat(held, ' ')`

export const redisTokens = ({ redis, names }: RedisParts): TokenStore => {
  const take = scriptOn<string>(redis, 'abohawaTokens', 1, takeScript)
  const partitions = usagePartitionsOn(redis)
  return {
    takeTokens: async ({ keyId, buckets, wanted, ahead, share }) => {
      const reply = await take(
        names.tokens(partitions.of(keyId), keyId),
        ...[wanted, ahead, share],
        ...buckets.flatMap(({ name, capacity, perMs, spent }) => [name, capacity, perMs, spent]),
      )
      const [granted = Number.NaN, ...left] = reply.split(' ').map(Number)
      if (left.length !== buckets.length || ![granted, ...left].every(Number.isFinite))
        throw new StoreError(`Redis answered ${left.length} numbers for ${buckets.length} buckets`)
      return { granted, left }
    },
  }
}
