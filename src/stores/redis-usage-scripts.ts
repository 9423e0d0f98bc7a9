// The scripts that count in Redis, and their rule for a record that can't be read: it costs its own key alone and is made
// anew in the same step. A day's count begins again at the largest whole number that anything legible tells of it: the
// count itself, the month's record of that day, or the sum of what the instances said they dealt. Who sends them, and
// what is told, is redis-usage's.

import { mostCounted } from './records.ts'
import { functionsLua, namesLua, recordsLua } from './redis-records.ts'

// Numbers that a take brings.
const fieldsPerTake = 6

// A count with more fields is not read whole: its sum and the asking instance's own share are all that is believed of it.
const mostInstanceFields = 2_000

// A trip that no instance reaches: a sequence beyond it is nobody's, while one below it is taken at its word.
const mostSequence = 1e12

/**
 * `mend` answers what a day's count is after it was made anew and how much of that is the asking instance's, or nil and an
 * error that is to be passed on. What instances dealt and nobody can read any more is part of the count and in the field
 * `unclaimed`: each instance whose own field is gone takes of it what it was told is counted, so that nothing counts twice.
 */
const mendLua = `${functionsLua}
local match, most = string.match, ${mostCounted}
local function pair(value)
  local last, units = match(value, '^(%d+) (%d+)$')
  if last and #last <= 15 and #units <= 15 then return tonumber(last), tonumber(units) end
end
local function mend(live, record, dayOfMonth, liveUntil, instance, confirmed)
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
  local told = pcall('HGET', record, dayOfMonth)
  if type(told) == 'string' then used = math.max(used, whole(told) or 0) end
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
 * KEYS: the day's count and the month's record of each take. ARGV: instance, sequence, channel; as JSON the days, each
 * with the ends of a count and of a record, and the takes in one row of numbers: units, limit, dealt, confirmed, step and
 * which of the days; then of each take the message that is published before its count. A refused take makes no count. Answers in one string,
 * because a number by itself costs more to send and to read than to count; and where something was mended in a second one
 * `number of the take:record:count`, blank after blank.
 */
export const takeScript = `${namesLua}
local match, instance, sequence = string.match, ARGV[1], tonumber(ARGV[2])
local days, takes = cjson.decode(ARGV[4]), cjson.decode(ARGV[5])
local reply, mended, overtakenBy = {}, {}, 0
for i = 1, #KEYS / 2 do
  local live, record, at = KEYS[2 * i - 1], KEYS[2 * i], (i - 1) * ${fieldsPerTake}
  local units, limit, dealt, confirmed, day = takes[at + 1], takes[at + 2], takes[at + 3], takes[at + 4], days[takes[at + 6]]
  local found = pcall('HMGET', live, 'used', instance)
  local isThere, pairText = found[1], found[2]
  local told = isThere or '0'
  local before, mine, last
  if not find(told, '%D') and #told <= 15 then before = tonumber(told) end
  if pairText then
    last, mine = match(pairText, '^(%d+) (%d+)$')
    if last and #last + #mine <= 30 then last, mine = tonumber(last), tonumber(mine) else mine = nil end
  else
    last, mine = 0, 0
  end
  if not before or not mine or mine > before or found.err then
    -- Made only where it is needed: functions cost as much to make as a count.
    ${mendLua}
    if found.err and not isOtherType(found) then return found end
    local used, own = mend(live, record, day[1], day[2], instance, confirmed)
    if not used then return own end
    -- As if it were new, so that its expiry is set last: that of a day long over removes it.
    isThere, told, before, mine, last = false, text('%d', used), used, own, 0
    mended[#mended + 1] = text('%d:day:%s', i, told)
  elseif isThere and not pairText then
    local unclaimed = call('HGET', live, 'unclaimed')
    if unclaimed and not find(unclaimed, '%D') and #unclaimed <= 15 then
      mine = math.min(tonumber(unclaimed) or 0, confirmed)
      call('HSET', live, 'unclaimed', text('%d', (tonumber(unclaimed) or 0) - mine))
    end
  elseif not isThere then
    -- Of a day long over, or thrown away: the month's record has what was counted.
    local recorded = pcall('HGET', record, day[1])
    if type(recorded) == 'string' and find(recorded, '^%d+$') and #recorded <= 15 and recorded ~= '0' then
      told, before = recorded, tonumber(recorded)
      mine = math.min(before, confirmed)
      call('HSET', live, 'unclaimed', text('%d', before - mine))
    end
  elseif last >= sequence then
    if last >= ${mostSequence} then
      mended[#mended + 1] = text('%d:day:%s', i, told)
    elseif last > overtakenBy then
      overtakenBy = last
    end
  end
  if overtakenBy == 0 then
    local used = before + dealt - mine
    if used < 0 then used = 0 end
    local taken = limit - used
    if taken > units then taken = units end
    if taken < 0 then taken = 0 end
    used = used + taken
    local usedText = told
    if used ~= before then
      usedText = text('%d', used)
      local set = pcall('HSET', record, day[1], usedText)
      if set ~= 0 then
        if set ~= 1 then
          if not find(set.err, 'WRONGTYPE', 1, true) then return set end
          call('DEL', record)
          call('HSET', record, day[1], usedText)
          mended[#mended + 1] = text('%d:month:%s', i, usedText)
        end
        call('PEXPIREAT', record, day[3])
      end
      local step = takes[at + 5]
      if floor(used / step) > floor(before / step) then
        call('PUBLISH', ARGV[3], ARGV[5 + i] .. ' ' .. usedText)
      end
    end
    if isThere or used > 0 then
      call('HSET', live, 'used', usedText, instance, text('%s %d', ARGV[2], dealt + taken))
      if not isThere then call('PEXPIREAT', live, day[2]) end
    end
    reply[i] = text('%d %s %s', taken, usedText, told)
  end
end
if overtakenBy > 0 then return redis.error_reply(text('OVERTAKEN by trip %d', overtakenBy)) end
if #mended == 0 then return table.concat(reply, ' ') end
return { table.concat(reply, ' '), table.concat(mended, ' ') }`

/** KEYS: the day's count and the month's record. ARGV: the count, the ends of both, and the day of the month. */
export const raiseScript = `${recordsLua}
local used, mended = tonumber(ARGV[1]), ''
local told, held = pcall('HGET', KEYS[2], ARGV[4]), pcall('HGET', KEYS[1], 'used')
for _, found in ipairs({ told, held }) do
  if type(found) == 'table' and not isOtherType(found) then return found end
end
local isRecord, isCount = type(told) ~= 'table', type(held) ~= 'table'
local recorded = isRecord and whole(told or '0')
if recorded and recorded >= used then return mended end
if not isCount then call('DEL', KEYS[1]) end
if not isCount or (held and not whole(held)) then mended = 'day' end
used = math.max(used, isCount and whole(held) or 0)
if not recorded and type(told) == 'string' then mended = mended .. ' month' end
call('HSET', KEYS[1], 'used', text('%d', used))
call('PEXPIREAT', KEYS[1], ARGV[2])
local set = pcall('HSET', KEYS[2], ARGV[4], text('%d', used))
if type(set) == 'table' then
  if not isOtherType(set) then return set end
  call('DEL', KEYS[2])
  call('HSET', KEYS[2], ARGV[4], text('%d', used))
  mended = mended .. ' month'
end
call('PEXPIREAT', KEYS[2], ARGV[3])
return mended`

/** KEYS: the month's record. ARGV: days of the month. Answers each count, or `-` where it can't be read. */
export const usedScript = `${recordsLua}
local found = pcall('HMGET', KEYS[1], unpack(ARGV))
if found.err and not isOtherType(found) then return found end
local reply = {}
for i = 1, #ARGV do
  local count = not found.err and whole(found[i] or '0')
  reply[i] = count and text('%d', count) or '-'
end
return table.concat(reply, ' ')`

/** KEYS: the day's count. Answers what is legible of it, and changes nothing. */
export const legibleScript = `${namesLua}${mendLua}
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
