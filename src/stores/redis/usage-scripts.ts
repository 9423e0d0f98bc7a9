// The Lua script that counts a batch in Redis, and one that raises a count, for imports. Two hashes of a partition hold its counts, with
// a field per key: the counts of one day, and the daily sums of one month. A field that can't be read costs only its own key: it is
// as if it were not there.
//
//   counts of a day      `50 -:0:3 one:7:30 two:4:17`   the sum, then for each instance its last batch and its units;
//                                                       under `-` the units that no instance has
//   sums of a month      `20:7 21:50`                   for each day its sum

import { namesLua, recordsLua } from './server.ts'
import { putTokensLua, readTokensLua } from './token-lua.ts'

// A format of Lua's struct: it reads a batch in a quarter of the time that JSON takes.
const packedEntry = '<dddddI2c0'
const packedRun = '<dd'

// Some 600 instances of a key and day. Of a longer value only the sum is read.
const longestCount = 16_384

/** The sums of a month take 31 times a day, a count of 15 digits and two separators. */
const longestSums = 600

// A field and a value of more than 64 characters, with which Redis stores a hash as a table from the beginning. The list, which
// it has for hashes of up to 512 fields, is searched from its start for every field.
const tableMark = `'-', '${'usage by key id; abohawa, src/stores/redis/usage-scripts.ts'.padEnd(65, '.')}'`

/** Lua after a hash has new fields. An expiry that is past deletes the hash. @param key @param until as Lua */
export const keepUntilLua = (key: string, until: string): string =>
  `call('HSET', ${key}, ${tableMark}) call('PEXPIREAT', ${key}, ${until}, 'NX')`

// No instance reaches this sequence: a larger one is damage, a smaller one is trusted.
const maxSequence = 1e12

/** `sumIn` returns the sum of a day of a month, or nil where it is missing or no whole number; `mark` is `21:`. */
const sumsLua = `
local function sumIn(sums, mark)
  if not sums or #sums > ${longestSums} then return nil end
  local _, at = find(' ' .. sums, ' ' .. mark, 1, true)
  local sum = at and string.match(sums, '^%d+', at)
  local after = sum and string.byte(sums, at + #sum)
  if sum and #sum <= 15 and (not after or after == 32) then return tonumber(sum) end
end
local function otherSums(sums, mark)
  if not sums or #sums > ${longestSums} then return '' end
  local kept = ''
  for each in string.gmatch(sums, '%S+') do
    if find(each, '^%d%d:%d+$') and string.sub(each, 1, 3) ~= mark then kept = kept .. each .. ' ' end
  end
  return kept
end
`

/**
 * Defined where it is first needed, because defining functions costs as much as a count. `readCount` reads the count of a key that
 * the calling instance has no units in. Returns the sum, the units of the instance and its last batch, the text of what the others
 * have, and whether the count is damaged: then it is as if it were not there. A missing count begins at the month's sum of that day, and
 * an instance claims from `-` the units that the store had confirmed to it, so that nothing is counted twice.
 */
const readCountLua = `${sumsLua}
keepSums = otherSums
function readCount(value, sums, mark, confirmed)
  local head = value and match(value, '^%d+')
  local used = head and #head <= 15 and tonumber(head)
  local mine, last, unclaimed, others = nil, 0, 0, ''
  if used and #value > ${longestCount} then
    unclaimed = used
  elseif used then
    local at = #head + 1
    while at <= #value do
      local _, to, name, lastText, unitsText = find(value, '^ ([^ :]+):(%d+):(%d+)', at)
      if not to or #lastText > 15 or #unitsText > 15 then
        used = nil
        break
      end
      if name == '-' then
        unclaimed = tonumber(unitsText)
      elseif name == instance then
        mine, last = tonumber(unitsText), tonumber(lastText)
      else
        others = others .. sub(value, at, to)
      end
      at = to + 1
    end
  end
  local isDamaged = value and (not used or (mine or 0) > used)
  if isDamaged or not value then
    used = sumIn(sums, mark) or 0
    mine, last, unclaimed, others = nil, 0, used, ''
  end
  if not mine then
    mine = math.min(unclaimed, confirmed)
    unclaimed = unclaimed - mine
  end
  if unclaimed > 0 then others = text(' -:0:%d', unclaimed) .. others end
  return used, mine, last, others, isDamaged
end
`

/**
 * Commits one batch. KEYS: the counts of its day, the sums of its month, and the token buckets of the keys that have any. ARGV: instance,
 * sequence, channel, the day, the expiries of both hashes, the number of entries, and the entries packed one after the other: each is
 * a `packedEntry` with units (negative: the number of its runs), limit, admitted, confirmed, step and the id of the key. After all
 * entries come their runs in the same order, each a `packedRun`: the units of a request, and how many requests. A refused entry
 * creates no count. Then for each hash of buckets the number of its entry, how many buckets, and of each its name, capacity, tokens per ms
 * and what was spent of it.
 *
 * Returns `granted used before` of all entries in one string, which is cheaper than a list of numbers. Where something was damaged, or
 * tokens were requested, a second string has the numbers of the entries whose count was damaged, and `day` or `month` for the whole
 * hash; a third has of each key with buckets the tokens that were taken and what each bucket has left. An overtaken batch counts nothing.
 */
export const commitScript = `${namesLua}
local match, sub, byte = string.match, string.sub, string.byte
local live, record, instance, sequence, day = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), ARGV[4]
local liveUntil, recordUntil, size, packed, at = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], 1
local ownPattern = ' ' .. string.gsub(instance, '%W', '%%%0') .. ':(%d+):(%d+)'
local ownMark = ' ' .. instance .. ':' .. ARGV[2] .. ':'
local reply, damaged, overtakenBy, ids, numbers = {}, {}, 0, {}, {}
local readCount, keepSums
local rates, ratesInOrder, tokens, now = {}, {}, {}, nil
if #KEYS > 2 then
  ${readTokensLua}
end
for i = 1, size do
  local n = 5 * i
  numbers[n - 4], numbers[n - 3], numbers[n - 2], numbers[n - 1], numbers[n], ids[i], at = struct.unpack('${packedEntry}', packed, at)
end
local mark = sub(day, 9) .. ':'
local counts, sums = pcall('HMGET', live, unpack(ids)), pcall('HMGET', record, unpack(ids))
local isLiveLost, isRecordLost = counts.err, sums.err
if isLiveLost then
  if not find(isLiveLost, 'WRONGTYPE', 1, true) then return counts end
  counts, damaged[#damaged + 1] = {}, 'day'
end
if isRecordLost then
  if not find(isRecordLost, 'WRONGTYPE', 1, true) then return sums end
  sums, damaged[#damaged + 1] = {}, 'month'
end
local toLive, toRecord, messages, liveSize, recordSize = {}, {}, {}, 0, 0
for i = 1, size do
  local n, value, sum = 5 * i, counts[i], sums[i]
  local units, limit, admitted = numbers[n - 4], numbers[n - 3], numbers[n - 2]
  local before, beforeText, mine, last, others, isDamaged
  if value and #value <= ${longestCount} then
    local from, to, lastText, mineText = find(value, ownPattern)
    beforeText = match(value, '^%d+')
    if from and beforeText and #beforeText <= 15 and #lastText <= 15 and #mineText <= 15 then
      local after = byte(value, to + 1)
      if byte(value, #beforeText + 1) == 32 and (not after or after == 32) then
        before, mine, last = tonumber(beforeText), tonumber(mineText), tonumber(lastText)
        if mine <= before then others = sub(value, #beforeText + 1, from - 1) .. sub(value, to + 1) end
      end
    end
  end
  if not others then
    if not readCount then
      ${readCountLua}
    end
    before, mine, last, others, isDamaged = readCount(value, sum, mark, numbers[n - 1])
    beforeText = text('%d', before)
  end
  if last >= sequence then
    if last >= ${maxSequence} then
      isDamaged = true
    elseif last > overtakenBy then
      overtakenBy = last
    end
  end
  local used = before + admitted - mine
  if used < 0 then used = 0 end
  local granted = limit - used
  if units < 0 then
    local left, rate = granted, rates[i]
    granted = 0
    for _ = 1, -units do
      local unitsEach, requests
      unitsEach, requests, at = struct.unpack('${packedRun}', packed, at)
      if rate then
        requests = math.min(requests, rate.free - rate.taken)
        rate.taken = rate.taken + requests
      end
      local fitting = unitsEach > 0 and floor((left - granted) / unitsEach) or 0
      if fitting > requests then fitting = requests end
      if fitting > 0 then granted = granted + fitting * unitsEach end
    end
  elseif granted > units then
    granted = units
  end
  if granted < 0 then granted = 0 end
  used = used + granted
  local usedText = beforeText
  if used ~= before then
    usedText = text('%d', used)
    local step = numbers[n]
    if floor(used / step) > floor(before / step) then
      messages[#messages + 1] = ids[i] .. ' ' .. day .. ' ' .. usedText
    end
  end
  if used ~= before or isDamaged or isLiveLost or isRecordLost then
    local item = mark .. beforeText
    local from = sum and #sum - #item or -1
    local rest
    -- The day that was written last is at the end.
    if from >= 0 and sub(sum, from + 1) == item and (from == 0 or byte(sum, from) == 32) and from < ${longestSums} then
      rest = sub(sum, 1, from)
    elseif sum then
      if not readCount then
        ${readCountLua}
      end
      rest = keepSums(sum, mark)
    else
      rest = ''
    end
    toRecord[recordSize + 1], toRecord[recordSize + 2] = ids[i], rest .. mark .. usedText
    recordSize = recordSize + 2
  end
  if value or used > 0 then
    toLive[liveSize + 1], toLive[liveSize + 2] = ids[i], usedText .. others .. ownMark .. text('%d', admitted + granted)
    liveSize = liveSize + 2
  end
  if isDamaged then damaged[#damaged + 1] = text('%d', i) end
  local triple = 3 * i
  reply[triple - 2], reply[triple - 1], reply[triple] = granted == 1 and '1' or text('%d', granted), usedText, beforeText
end
if overtakenBy == 0 then
  if isLiveLost then call('UNLINK', live) end
  if isRecordLost then call('UNLINK', record) end
  if liveSize > 0 and (call('HSET', live, unpack(toLive)) > 0 or #damaged > 0) then
    ${keepUntilLua('live', 'liveUntil')}
  end
  if recordSize > 0 and (call('HSET', record, unpack(toRecord)) > 0 or #damaged > 0) then
    ${keepUntilLua('record', 'recordUntil')}
  end
  ${putTokensLua}
  -- A user without channels may not; what is counted stands.
  for i = 1, #messages do pcall('PUBLISH', ARGV[3], messages[i]) end
end
if overtakenBy > 0 then return redis.error_reply(text('OVERTAKEN by batch %d', overtakenBy)) end
if #damaged == 0 and #tokens == 0 then return table.concat(reply, ' ') end
return { table.concat(reply, ' '), table.concat(damaged, ' '), table.concat(tokens, ' ') }`

/**
 * KEYS: the counts of a day and the sums of its month. ARGV: the id of the key, the sum, the expiries of both hashes, and the
 * day of the month. Raises both to the sum. No instance has what is added, so an instance that reports again claims its units from it.
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
local value = found[1] and #found[1] <= ${longestCount} and found[1] or ''
local head = string.match(value, '^[^ ]*')
used = math.max(used, whole(head) or 0)
local unclaimed, rest = used - (whole(head) or 0), string.sub(value, #head + 1)
local from, to, others = find(rest, ' %-:%d+:(%d+)')
if from then
  unclaimed = unclaimed + (whole(others) or 0)
  rest = string.sub(rest, 1, from - 1) .. string.sub(rest, to + 1)
end
if unclaimed > 0 then rest = text(' -:0:%d', unclaimed) .. rest end
-- The units of the instances stay.
call('HSET', KEYS[1], id, text('%d', used) .. rest)
${keepUntilLua('KEYS[1]', 'ARGV[3]')}
call('HSET', KEYS[2], id, otherSums(found[2], mark) .. mark .. text('%d', used))
${keepUntilLua('KEYS[2]', 'ARGV[4]')}
return 0`
