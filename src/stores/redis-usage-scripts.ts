// The Lua scripts that count usage in Redis. A record that can't be read costs its own key alone: the script repairs it in
// the same step. A day's count then begins again at the largest whole number that is legible: the count itself, the
// month's record of that day, or the sum of what the instances reported. redis-usage.ts calls the scripts and logs.

import { mostCounted } from './records.ts'
import { functionsLua, namesLua, recordsLua } from './redis-records.ts'

// Numbers per entry of a batch.
const fieldsPerEntry = 6

// Of a count with more fields only the sum and the field of the calling instance are read.
const mostInstanceFields = 2_000

// No instance reaches this sequence: a larger one is damage, a smaller one is trusted.
const mostSequence = 1e12

/**
 * `repair` repairs a day's count. Returns the count and how much of it belongs to the calling instance, or nil and an error to
 * pass on. Units of instances whose fields can't be read stay in the count, in the field `unclaimed`. An instance that lost
 * its field claims from it the units that the store had confirmed to it, so that nothing is counted twice.
 */
const repairLua = `${functionsLua}
local match, most = string.match, ${mostCounted}
local function pair(value)
  local last, units = match(value, '^(%d+) (%d+)$')
  if last and #last <= 15 and #units <= 15 then return tonumber(last), tonumber(units) end
end
local function repair(live, record, dayOfMonth, liveUntil, instance, confirmed)
  local size, fields = pcall('HLEN', live), {}
  if type(size) == 'table' then
    if not isOtherType(size) then return nil, size end
    call('DEL', live)
  elseif size > ${mostInstanceFields} then
    fields = { 'used', call('HGET', live, 'used') or '', instance, call('HGET', live, instance) or '' }
    call('DEL', live)
  else
    fields = call('HGETALL', live)
  end
  local used, units, mine = 0, 0, nil
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if name == 'used' then
      used = whole(value) or 0
    elseif name ~= 'unclaimed' then
      local last, own = pair(value)
      if last then
        units = units + own
        if name == instance then mine = own end
      else
        call('HDEL', live, name)
      end
    end
  end
  local recorded = pcall('HGET', record, dayOfMonth)
  if type(recorded) == 'string' then used = math.max(used, whole(recorded) or 0) end
  used = math.min(most, math.max(used, units))
  local unclaimed = math.max(0, used - units)
  if not mine then
    mine = math.min(unclaimed, confirmed)
    unclaimed = unclaimed - mine
  end
  call('HSET', live, 'used', text('%d', used), 'unclaimed', text('%d', unclaimed))
  call('PEXPIREAT', live, liveUntil)
  return used, mine
end
`

/**
 * Commits one batch. KEYS: the day's count and the month's record of each entry. ARGV: instance, sequence, channel; the
 * days as JSON, each with the expiries of a count and of a record; the entries as one JSON list of numbers: units, limit,
 * admitted, confirmed, step and index of the day; then the message of each entry without its count. A refused entry creates
 * no count. Returns `granted used before` of all entries in one string, which is cheaper than a list of numbers. After
 * repairs it returns a second string too: `entry:record:count`, separated by spaces.
 */
export const commitScript = `${namesLua}
local match, instance, sequence = string.match, ARGV[1], tonumber(ARGV[2])
local days, entries = cjson.decode(ARGV[4]), cjson.decode(ARGV[5])
local reply, repaired, overtakenBy = {}, {}, 0
for i = 1, #KEYS / 2 do
  local live, record, at = KEYS[2 * i - 1], KEYS[2 * i], (i - 1) * ${fieldsPerEntry}
  local units, limit, admitted, confirmed, day = entries[at + 1], entries[at + 2], entries[at + 3], entries[at + 4], days[entries[at + 6]]
  local found = pcall('HMGET', live, 'used', instance)
  local isThere, pairText = found[1], found[2]
  local beforeText = isThere or '0'
  local before, mine, last
  if not find(beforeText, '%D') and #beforeText <= 15 then before = tonumber(beforeText) end
  if pairText then
    last, mine = match(pairText, '^(%d+) (%d+)$')
    if last and #last + #mine <= 30 then last, mine = tonumber(last), tonumber(mine) else mine = nil end
  else
    last, mine = 0, 0
  end
  if not before or not mine or mine > before or found.err then
    -- Defined only when needed: defining functions costs as much as a count.
    ${repairLua}
    if found.err and not isOtherType(found) then return found end
    local used, own = repair(live, record, day[1], day[2], instance, confirmed)
    if not used then return own end
    -- Treated as new, so that its expiry is set last: the expiry of a past day deletes it.
    isThere, beforeText, before, mine, last = false, text('%d', used), used, own, 0
    repaired[#repaired + 1] = text('%d:day:%s', i, beforeText)
  elseif isThere and not pairText then
    local unclaimed = call('HGET', live, 'unclaimed')
    if unclaimed and not find(unclaimed, '%D') and #unclaimed <= 15 then
      mine = math.min(tonumber(unclaimed) or 0, confirmed)
      call('HSET', live, 'unclaimed', text('%d', (tonumber(unclaimed) or 0) - mine))
    end
  elseif not isThere then
    -- The day is long over, or the count was evicted: the month's record has the sum.
    local recorded = pcall('HGET', record, day[1])
    if type(recorded) == 'string' and find(recorded, '^%d+$') and #recorded <= 15 and recorded ~= '0' then
      beforeText, before = recorded, tonumber(recorded)
      mine = math.min(before, confirmed)
      call('HSET', live, 'unclaimed', text('%d', before - mine))
    end
  elseif last >= sequence then
    if last >= ${mostSequence} then
      repaired[#repaired + 1] = text('%d:day:%s', i, beforeText)
    elseif last > overtakenBy then
      overtakenBy = last
    end
  end
  if overtakenBy == 0 then
    local used = before + admitted - mine
    if used < 0 then used = 0 end
    local granted = limit - used
    if granted > units then granted = units end
    if granted < 0 then granted = 0 end
    used = used + granted
    local usedText = beforeText
    if used ~= before then
      usedText = text('%d', used)
      local set = pcall('HSET', record, day[1], usedText)
      if set ~= 0 then
        if set ~= 1 then
          if not find(set.err, 'WRONGTYPE', 1, true) then return set end
          call('DEL', record)
          call('HSET', record, day[1], usedText)
          repaired[#repaired + 1] = text('%d:month:%s', i, usedText)
        end
        call('PEXPIREAT', record, day[3])
      end
      local step = entries[at + 5]
      if floor(used / step) > floor(before / step) then
        call('PUBLISH', ARGV[3], ARGV[5 + i] .. ' ' .. usedText)
      end
    end
    if isThere or used > 0 then
      call('HSET', live, 'used', usedText, instance, text('%s %d', ARGV[2], admitted + granted))
      if not isThere then call('PEXPIREAT', live, day[2]) end
    end
    reply[i] = text('%d %s %s', granted, usedText, beforeText)
  end
end
if overtakenBy > 0 then return redis.error_reply(text('OVERTAKEN by batch %d', overtakenBy)) end
if #repaired == 0 then return table.concat(reply, ' ') end
return { table.concat(reply, ' '), table.concat(repaired, ' ') }`

/** KEYS: the day's count and the month's record. ARGV: the count, the expiries of both, and the day of the month. */
export const raiseScript = `${recordsLua}
local used, repaired = tonumber(ARGV[1]), ''
local recordText, countText = pcall('HGET', KEYS[2], ARGV[4]), pcall('HGET', KEYS[1], 'used')
for _, found in ipairs({ recordText, countText }) do
  if type(found) == 'table' and not isOtherType(found) then return found end
end
local isRecord, isCount = type(recordText) ~= 'table', type(countText) ~= 'table'
local recorded = isRecord and whole(recordText or '0')
if recorded and recorded >= used then return repaired end
if not isCount then call('DEL', KEYS[1]) end
if not isCount or (countText and not whole(countText)) then repaired = 'day' end
used = math.max(used, isCount and whole(countText) or 0)
if not recorded and type(recordText) == 'string' then repaired = repaired .. ' month' end
call('HSET', KEYS[1], 'used', text('%d', used))
call('PEXPIREAT', KEYS[1], ARGV[2])
local set = pcall('HSET', KEYS[2], ARGV[4], text('%d', used))
if type(set) == 'table' then
  if not isOtherType(set) then return set end
  call('DEL', KEYS[2])
  call('HSET', KEYS[2], ARGV[4], text('%d', used))
  repaired = repaired .. ' month'
end
call('PEXPIREAT', KEYS[2], ARGV[3])
return repaired`

/** KEYS: the month's record. ARGV: days of the month. Returns each count, or `-` when it can't be read. */
export const usedScript = `${recordsLua}
local found = pcall('HMGET', KEYS[1], unpack(ARGV))
if found.err and not isOtherType(found) then return found end
local reply = {}
for i = 1, #ARGV do
  local count = not found.err and whole(found[i] or '0')
  reply[i] = count and text('%d', count) or '-'
end
return table.concat(reply, ' ')`

/** KEYS: the day's count. Returns the largest count that is legible; changes nothing. */
export const legibleScript = `${namesLua}${repairLua}
local size = pcall('HLEN', KEYS[1])
if type(size) == 'table' then
  if isOtherType(size) then return 0 end
  return size
end
local used, units = whole(call('HGET', KEYS[1], 'used')) or 0, 0
if size <= ${mostInstanceFields} then
  local fields = call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if fields[i] ~= 'used' and fields[i] ~= 'unclaimed' then
      local last, own = pair(fields[i + 1])
      if last then units = units + own end
    end
  end
end
return math.min(most, math.max(used, units))`
