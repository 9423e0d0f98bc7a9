// The Lua scripts that read the counts of one key for reports, and raise them for imports. usage-scripts.ts has the form of
// what they read. Only whole numbers are returned.

import { maxCounted } from '../records.ts'
import { recordsLua } from './records.ts'
import { keepUntilLua, longestSums, sumsLua } from './usage-scripts.ts'

// A larger count of a day is not read further.
const longestRead = 16_384

/**
 * KEYS: the sums of a month. ARGV: the id of the key, and days of the month. Returns each sum, or `-` when it can't be read.
 */
export const usedScript = `${recordsLua}
local found = pcall('HGET', KEYS[1], ARGV[1])
if type(found) == 'table' and not isOtherType(found) then return found end
local sums, isWhole = {}, type(found) ~= 'table' and (not found or #found <= ${longestSums})
if isWhole and found then
  isWhole = found ~= ''
  for each in string.gmatch(found, '[^ ]+') do
    local day, sum = string.match(each, '^(%d%d):(.*)$')
    if day then sums[day] = whole(sum) or '-' else isWhole = false end
  end
end
local reply = {}
for i = 2, #ARGV do
  local sum = sums[ARGV[i]] or (isWhole and 0 or '-')
  reply[i - 1] = sum == '-' and sum or text('%d', sum)
end
return table.concat(reply, ' ')`

/**
 * KEYS: the counts of a day. ARGV: an instance, then the ids of keys. Returns for each its sum and the units of the instance,
 * separated by spaces, and `- -` where one can't be read; changes nothing.
 */
export const countsScript = `${recordsLua}
local found = pcall('HMGET', KEYS[1], unpack(ARGV, 2))
if found.err and not isOtherType(found) then return found end
local ownPattern, reply = ' ' .. string.gsub(ARGV[1], '%W', '%%%0') .. ':%d+:(%d+)', {}
for i = 1, #ARGV - 1 do
  local value, pair = not found.err and found[i], '0 0'
  if value or found.err then
    local used = value and #value <= ${longestRead} and whole(string.match(value, '^[^ ]*'))
    local own = used and whole(string.match(value .. ' ', ownPattern .. ' ') or '0')
    pair = own and text('%d %d', used, own) or '- -'
  end
  reply[i] = pair
end
return table.concat(reply, ' ')`

/** KEYS: the counts of a day. ARGV: the id of the key. Returns the largest sum that is legible; changes nothing. */
export const legibleScript = `${recordsLua}
local value = pcall('HGET', KEYS[1], ARGV[1])
if type(value) == 'table' then
  if isOtherType(value) then return 0 end
  return value
end
value = string.sub(value or '', 1, ${longestRead})
local used, units = whole(string.match(value, '^[^ ]*')) or 0, 0
for name, own in string.gmatch(value, ' ([^ :]+):%d+:(%d+)') do
  if name ~= '-' then units = units + (whole(own) or 0) end
end
return math.min(${maxCounted}, math.max(used, units))`

/**
 * KEYS: the counts of a day and the sums of its month. ARGV: the id of the key, the sum, the expiries of both hashes, and the
 * day of the month. Raises both to the sum; returns which of them could not be read.
 */
export const raiseScript = `${recordsLua}${sumsLua}
local id, used, mark, repaired = ARGV[1], tonumber(ARGV[2]), ARGV[5] .. ':', ''
local value, sums = pcall('HGET', KEYS[1], id), pcall('HGET', KEYS[2], id)
for _, found in ipairs({ value, sums }) do
  if type(found) == 'table' and not isOtherType(found) then return found end
end
local sum = type(sums) ~= 'table' and sumIn(sums, mark)
if sum and sum >= used then return repaired end
if type(value) == 'table' then
  call('UNLINK', KEYS[1])
  value, repaired = false, 'day'
end
if type(sums) == 'table' then
  call('UNLINK', KEYS[2])
  sums, repaired = false, repaired .. ' month'
elseif sums and not sum and find(' ' .. sums, ' ' .. mark, 1, true) then
  repaired = repaired .. ' month'
end
value = value and #value <= ${longestRead} and value or ''
local head = string.match(value, '^[^ ]*')
if value ~= '' and not whole(head) then repaired = 'day' .. repaired end
used = math.max(used, whole(head) or 0)
-- The units of the instances stay.
call('HSET', KEYS[1], id, text('%d', used) .. string.sub(value, #head + 1))
${keepUntilLua('KEYS[1]', 'ARGV[3]')}
call('HSET', KEYS[2], id, otherSums(sums, mark) .. mark .. text('%d', used))
${keepUntilLua('KEYS[2]', 'ARGV[4]')}
return repaired`
