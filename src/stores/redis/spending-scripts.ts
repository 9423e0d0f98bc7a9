// Reserves and corrects spending at the provider, as Lua: the two steps that count by consumer too. What a consumer may be
// granted is `roomOf` of fair-share.ts, and must stay the same. spending.ts runs them.

import { recordsLua } from './records.ts'

// Reads a counter or an instant: its first 16 bytes, or `x` for a key of another Redis type.
export const readLua = `${recordsLua}
local function textAt(key)
  local found = pcall('GETRANGE', key, 0, 15)
  if type(found) ~= 'table' then return found == '' and '0' or found end
  if not isOtherType(found) then return nil, found end
  return 'x'
end
-- An instant that nobody can have reopened at counts as none.
local function reopenedAt(key, now, longest)
  local value, failure = textAt(key)
  if failure then return nil, failure end
  local at = whole(value) or 0
  return at > now + longest and 0 or at
end
`

/** The values of a window: its limit, keepUntil and known count, then the bounds of a consumer: open, share, paced, little. */
const valuesPerWindow = 7

// KEYS: closed, windows, the consumers of each window, reopened. ARGV: wanted, unit, now, the longest closure, then the values
// of each window, then each consumer with what it wants. Returns the grant, the end of the closure, the count of each window
// and the last reopening; which of the keys were repaired; for each consumer its grant, and the positions of the windows
// without room for it as the bits of a number.
export const reserveScript = `${readLua}
local unit, now, repaired, claimed = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, {}
local value, failure = textAt(KEYS[1])
if failure then return failure end
local closed = whole(value)
if not closed or closed > now + tonumber(ARGV[4]) then
  call('DEL', KEYS[1])
  closed, repaired[1] = 0, 1
end
if closed <= now then closed = 0 end
local granted = closed > 0 and 0 or floor(tonumber(ARGV[1]) / unit) * unit
local reply = { 0, closed }
local reopened
reopened, failure = reopenedAt(KEYS[#KEYS], now, tonumber(ARGV[4]))
if failure then return failure end
local n, windows = (#KEYS - 2) / 2, {}
for i = 1, n do
  local at = 4 + (i - 1) * ${valuesPerWindow}
  value, failure = textAt(KEYS[i + 1])
  if failure then return failure end
  local used, known = whole(value), tonumber(ARGV[at + 3])
  -- A counter in use never goes away by itself: settling leaves a 0.
  if not used or used == 0 and known > 0 and call('EXISTS', KEYS[i + 1]) == 0 then
    used = known
    call('SET', KEYS[i + 1], text('%d', used), 'PXAT', ARGV[at + 2])
    repaired[#repaired + 1] = i + 1
  end
  windows[i] = {
    key = KEYS[i + 1], consumers = KEYS[n + 1 + i], used = used, before = used, limit = tonumber(ARGV[at + 1]),
    keep = ARGV[at + 2], open = tonumber(ARGV[at + 4]), share = tonumber(ARGV[at + 5]), paced = tonumber(ARGV[at + 6]),
    little = tonumber(ARGV[at + 7]), by = {}
  }
  granted = math.min(granted, floor((windows[i].limit - used) / unit) * unit)
end
granted = math.max(granted, 0)
for _, window in ipairs(windows) do window.used = window.used + granted end

local names, wanted = {}, {}
for i = 5 + n * ${valuesPerWindow}, #ARGV, 2 do
  names[#names + 1], wanted[#wanted + 1] = ARGV[i], tonumber(ARGV[i + 1])
end
if #names > 0 and closed == 0 then
  for i, window in ipairs(windows) do
    local found = pcall('HMGET', window.consumers, unpack(names))
    if found.err then
      if not isOtherType(found) then return found end
      call('DEL', window.consumers)
      found, repaired[#repaired + 1] = {}, n + 1 + i
    end
    local missing = {}
    for c = 1, #names do
      window.by[c] = whole(found[c]) or 0
      if not whole(found[c]) then
        local at = #missing
        missing[at + 1], missing[at + 2] = names[c], '0'
      end
    end
    -- One that wants nothing now is there too: nobody else is alone then.
    if #missing > 0 then call('HSET', window.consumers, unpack(missing)) end
    call('PEXPIREAT', window.consumers, window.keep)
    window.isAlone = call('HLEN', window.consumers) == 1
  end
end
for c = 1, #names do
  local grant, held = closed > 0 and 0 or floor(wanted[c] / unit) * unit, 0
  for i, window in ipairs(windows) do
    if closed > 0 then break end
    local by, used, limit = window.by[c], window.used, window.limit
    local own = math.min(window.share, floor((limit - (used - by)) / 2)) - by
    local fair = window.isAlone and window.open - used or math.max(own, window.paced - used)
    local room = math.max(math.min(window.open - used, fair), math.min(limit - used, window.little - by))
    window.room = room
    grant = math.min(grant, math.max(0, floor(room / unit) * unit))
  end
  for i, window in ipairs(windows) do
    window.used = window.used + grant
    if closed == 0 and window.room - grant < unit then held = held + 2 ^ (i - 1) end
    if grant > 0 then call('HSET', window.consumers, names[c], text('%d', window.by[c] + grant)) end
  end
  granted = granted + grant
  claimed[2 * c - 1], claimed[2 * c] = grant, held
end

reply[1] = granted
for i, window in ipairs(windows) do
  reply[i + 2] = window.used
  if window.used > window.before then
    call('INCRBY', window.key, text('%d', window.used - window.before))
    call('PEXPIREAT', window.key, window.keep)
  end
end
reply[n + 3] = reopened
return { reply, repaired, claimed }`

// KEYS: windows, then the consumers of each. ARGV: how many windows; change, least former count or nothing, and keepUntil of
// each; then each consumer with its part of each window's change. A counter that is missing or unreadable is left to the next
// reservation, unless the caller gives the former count, or a missing one gets its first weight; a consumer's that is gone stays gone.
export const settleScript = `${readLua}
local n = tonumber(ARGV[1])
for i = 1, n do
  local value, failure = textAt(KEYS[i])
  if failure then return failure end
  local before, least, by = whole(value), tonumber(ARGV[i * 3]), tonumber(ARGV[i * 3 - 1])
  if least or before and (by > 0 or call('EXISTS', KEYS[i]) == 1) then
    local used = math.max(0, math.max(before or 0, least or 0) + by)
    call('SET', KEYS[i], text('%d', used), 'PXAT', ARGV[i * 3 + 1])
  end
end
for at = 2 + n * 3, #ARGV, n + 1 do
  for i = 1, n do
    local found = pcall('HGET', KEYS[n + i], ARGV[at])
    local before = type(found) ~= 'table' and whole(found)
    if before then
      call('HSET', KEYS[n + i], ARGV[at], text('%d', math.max(0, before + tonumber(ARGV[at + i]))))
    end
  end
end`
