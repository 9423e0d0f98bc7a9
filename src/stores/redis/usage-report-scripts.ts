// The Lua scripts that read the counts of one key for reports, and raise them for imports. usage-scripts.ts has the form of
// what they read. Only whole numbers are returned.

import { recordsLua } from './records.ts'
import { keepUntilLua, sumsLua } from './usage-scripts.ts'

// A larger count of a day is not read further.
const longestRead = 16_384

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

/**
 * KEYS: the counts of a day and the sums of its month. ARGV: the id of the key, the sum, the expiries of both hashes, and the
 * day of the month. Raises both to the sum.
 */
export const raiseScript = `${recordsLua}${sumsLua}
local id, used, mark = ARGV[1], tonumber(ARGV[2]), ARGV[5] .. ':'
local found = {}
for i = 1, 2 do
  found[i] = pcall('HGET', KEYS[i], id)
  if type(found[i]) == 'table' then
    if not isOtherType(found[i]) then return found[i] end
    call('UNLINK', KEYS[i])
    found[i] = false
  end
end
local sum = sumIn(found[2], mark)
if sum and sum >= used then return 0 end
local value = found[1] and #found[1] <= ${longestRead} and found[1] or ''
local head = string.match(value, '^[^ ]*')
used = math.max(used, whole(head) or 0)
-- The units of the instances stay.
call('HSET', KEYS[1], id, text('%d', used) .. string.sub(value, #head + 1))
${keepUntilLua('KEYS[1]', 'ARGV[3]')}
call('HSET', KEYS[2], id, otherSums(found[2], mark) .. mark .. text('%d', used))
${keepUntilLua('KEYS[2]', 'ARGV[4]')}
return 0`
