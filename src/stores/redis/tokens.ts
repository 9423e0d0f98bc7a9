// The token buckets of keys in Redis: a hash for each key, with what each of its buckets held at an instant of Redis' own clock.
// It expires when all of them are full again. What can't be read is as if it were not there.

import { StoreError } from '../store.ts'
import type { TokenStore } from '../token-bucket.ts'
import type { RedisParts } from './connection.ts'
import { usagePartitionsOn } from './key-names.ts'
import { recordsLua, scriptOn } from './records.ts'

// Beyond the instant at which the buckets are full.
const keepMs = 1_000

/**
 * KEYS: the buckets of a key, a hash with `at`, the instant, and what each held then, such as `second`: `3.25`. ARGV: wanted, ahead and
 * share, then of each bucket its name, capacity, tokens per ms, and the tokens that were spent without the store. Returns the granted
 * tokens and what each bucket has left. What refills and what is granted is that of token-bucket.ts.
 */
const takeScript = `${recordsLua}
local wanted, ahead, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local names = {}
for i = 4, #ARGV, 4 do names[#names + 1] = ARGV[i] end
local found = pcall('HMGET', KEYS[1], 'at', unpack(names))
if found.err then
  if not isOtherType(found) then return found end
  call('DEL', KEYS[1])
  found = {}
end
local function number(value) return value and #value < 30 and find(value, '^[%d.]+$') and tonumber(value) end
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local elapsed = math.max(0, now - (number(found[1]) or now))
local tokens, free, fullIn = {}, math.huge, 0
for i = 1, #names do
  local n = 4 * i
  local capacity = tonumber(ARGV[n + 1])
  local before = number(found[i + 1]) or capacity
  local refilled = math.min(capacity, floor((before + elapsed * ARGV[n + 2]) * 1e9 + 0.5) / 1e9)
  tokens[i] = math.max(0, math.min(capacity, refilled - ARGV[n + 3]))
  free = math.min(free, floor(tokens[i]))
end
local granted = free
if free >= wanted then granted = wanted + floor(math.min(ahead, (free - wanted) * share)) end
local fields = { 'at', text('%.3f', now) }
for i = 1, #names do
  local n = 4 * i
  local left = tokens[i] - granted
  tokens[i] = text('%.9f', left)
  fields[2 * i + 1], fields[2 * i + 2] = names[i], tokens[i]
  fullIn = math.max(fullIn, (ARGV[n + 1] - left) / ARGV[n + 2])
end
call('HSET', KEYS[1], unpack(fields))
call('PEXPIRE', KEYS[1], text('%d', math.ceil(fullIn) + ${keepMs}))
return text('%d ', granted) .. table.concat(tokens, ' ')`

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
