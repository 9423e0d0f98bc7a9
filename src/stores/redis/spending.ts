// The spending at the provider, in Redis: a hash per window with what was charged, what was refunded, and the part of each consumer;
// and a hash with the closure and the last reopening. All keys of one provider share a hash tag, so that a step over several windows
// stays in one slot of a cluster; every key has an expiry.

import { clockToleranceMs } from '../../common/clock.ts'
import { safeText } from '../../common/outside-text.ts'
import { keepReopeningForMs, longestClosureMs, longestReason, wholeFrom } from '../records.ts'
import type { Closure, SpendingStore } from '../spending-store.ts'
import type { RedisParts } from './connection.ts'
import { recordsLua, scriptOn } from './server.ts'

// ARGV 1 to 3: now, the longest closure, the tolerated difference of clocks. Reads the closure that is in force and the
// last reopening from KEYS[1].
const closureLua = `${recordsLua}
local now, longest, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found = call('HMGET', KEYS[1], 'until', 'at', 'reason', 'reopened')
local till, at, reason = whole(found[1]) or 0, whole(found[2]) or 0, found[3] or ''
local reopened = whole(found[4]) or 0
-- An impossible reopening.
if reopened > now + longest then reopened = 0 end
-- Over, or of a clock that was wrong.
if till <= now or till > now + longest or at > now + tolerance then till, at, reason = 0, 0, '' end
local function keep()
  if till > 0 then call('HSET', KEYS[1], 'until', text('%d', till), 'at', text('%d', at), 'reason', reason)
  else call('HDEL', KEYS[1], 'until', 'at', 'reason') end
  call('HSET', KEYS[1], 'reopened', text('%d', reopened))
  call('PEXPIREAT', KEYS[1], text('%d', now + ${keepReopeningForMs}))
end`

const valuesPerWindow = 9

// KEYS: closure, windows. ARGV: three as above, the unit, what is wanted, the closure of the caller with its instant and reason,
// the reopening that it knows or nothing, how many claims; then for each window the limit or nothing, keepUntil, what is known
// and what is added of charged and refunded, and the bounds solo, share and paced or nothing; then each claim with what it wants; then
// consumer, window and amount of each return. Returns the grants, the closure, the counts of the windows, for each claim its
// grant and the windows without room for it as bits.
// What a consumer may be granted must be as in `roomOf` of fair-share.ts.
const spendScript = `${closureLua}
local unit, wanted, claims = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[10])
local known, before = tonumber(ARGV[9]), text('%d %d', till, reopened)
if known and known > reopened then till, at, reason, reopened = 0, 0, '', known end
if tonumber(ARGV[6]) > till and not (known and known < reopened) then
  till, at, reason = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
end
if before ~= text('%d %d', till, reopened) then keep() end

local windows = {}
for i = 2, #KEYS do
  local first = 10 + (i - 2) * ${valuesPerWindow}
  local function value(n) return tonumber(ARGV[first + n]) end
  local counts = call('HMGET', KEYS[i], 'charged', 'refunded')
  local charged, refunded = whole(counts[1]) or 0, whole(counts[2]) or 0
  local window = {
    key = KEYS[i], limit = value(1), keep = ARGV[first + 2], charged = math.max(charged, value(3)) + value(5),
    refunded = math.max(refunded, value(4)) + value(6), solo = value(7), share = value(8), paced = value(9), by = {},
    fields = (counts[1] and 1 or 0) + (counts[2] and 1 or 0)
  }
  window.isChanged = window.charged ~= charged or window.refunded ~= refunded
  window.used = math.max(0, window.charged - window.refunded)
  windows[i - 1] = window
end
local names, wants, afterWindows = {}, {}, 10 + (#KEYS - 1) * ${valuesPerWindow}
for c = 1, claims do
  names[c], wants[c] = ':' .. ARGV[afterWindows + 2 * c - 1], tonumber(ARGV[afterWindows + 2 * c])
end
for i = afterWindows + 2 * claims + 1, #ARGV, 3 do
  local window, name = windows[tonumber(ARGV[i + 1]) + 1], ':' .. ARGV[i]
  local by = whole(call('HGET', window.key, name))
  -- A consumer's count that was dropped is not restored.
  if by then call('HSET', window.key, name, text('%d', math.max(0, by - tonumber(ARGV[i + 2])))) end
end

local limited = {}
for _, window in ipairs(windows) do
  if window.limit then limited[#limited + 1] = window end
end
local function charge(amount)
  for _, window in ipairs(limited) do
    window.charged, window.used = window.charged + amount, window.used + amount
    window.isChanged = window.isChanged or amount > 0
  end
end
local granted = till > 0 and 0 or floor(wanted / unit) * unit
for _, window in ipairs(limited) do granted = math.min(granted, floor((window.limit - window.used) / unit) * unit) end
granted = math.max(0, granted)
charge(granted)

local claimed = {}
if claims > 0 and till == 0 then
  for _, window in ipairs(limited) do
    local counts, missing = call('HMGET', window.key, unpack(names)), {}
    for c = 1, claims do
      window.by[c] = whole(counts[c])
      if not window.by[c] then
        local last = #missing
        missing[last + 1], missing[last + 2], window.by[c] = names[c], '0', 0
      end
    end
    -- A consumer that wants nothing now counts as present: the others share with it.
    if #missing > 0 then call('HSET', window.key, unpack(missing)) window.isChanged = true end
    window.isAlone = call('HLEN', window.key) - window.fields == 1
  end
end
for c = 1, claims do
  local grant, held = till > 0 and 0 or floor(wants[c] / unit) * unit, 0
  for _, window in ipairs(limited) do
    if till > 0 then break end
    local left, by, room = window.limit - window.used, window.by[c]
    if not window.solo then room = left
    elseif window.isAlone then room = math.min(left, window.solo - window.used)
    else
      local own = math.max(unit, math.min(window.share, floor((left + by) / 2))) - by
      room = math.min(left, math.max(own, window.paced - window.used))
    end
    window.room = room
    grant = math.min(grant, math.max(0, floor(room / unit) * unit))
  end
  charge(grant)
  for i, window in ipairs(windows) do
    if window.room and window.room - grant < unit then held = held + 2 ^ (i - 1) end
    if window.room and grant > 0 then call('HSET', window.key, names[c], text('%d', window.by[c] + grant)) end
  end
  granted = granted + grant
  claimed[2 * c - 1], claimed[2 * c] = grant, held
end

local counts = {}
for i, window in ipairs(windows) do
  counts[2 * i - 1], counts[2 * i] = text('%d', window.charged), text('%d', window.refunded)
  if window.isChanged then
    call('HSET', window.key, 'charged', counts[2 * i - 1], 'refunded', counts[2 * i])
    call('PEXPIREAT', window.key, window.keep)
  end
end
return { granted, { till, at, reason, reopened }, counts, claimed }`

// Returns the closure that it ended, and the reopening.
const reopenScript = `${closureLua}
local ended = { till, at, reason }
till, reopened = 0, math.max(reopened + 1, now)
keep()
ended[4] = reopened
return ended`

type ClosureReply = [until: number, at: number, reason: string, reopened: number]
type SpendReply = [granted: number, closure: ClosureReply, counts: string[], claims: number[]]

export const redisSpending = ({ redis, names }: RedisParts): SpendingStore => {
  const runSpend = scriptOn<SpendReply>(redis, 'abohawaSpend', undefined, spendScript)
  const runReopen = scriptOn<ClosureReply>(redis, 'abohawaReopen', 1, reopenScript)

  return {
    spend: async ({ provider, windows, wanted, claims, returns, unit, now, closure, reopenedAt }) => {
      const keys = [names.closure(provider), ...windows.map(({ name }) => names.spending(provider, name))]
      const [granted, closed, counts, claimed] = await runSpend(
        keys.length,
        ...keys,
        now,
        longestClosureMs,
        clockToleranceMs,
        unit,
        wanted,
        closure?.until ?? 0,
        closure?.at ?? 0,
        safeText(closure?.reason ?? '', longestReason),
        reopenedAt ?? '',
        claims.length,
        ...windows.flatMap(({ limit, keepUntil, known, added, shares }) => [
          limit ?? '',
          keepUntil,
          known.charged,
          known.refunded,
          added.charged,
          added.refunded,
          shares?.soloLimit ?? '',
          shares?.share ?? '',
          shares?.pacedLimit ?? '',
        ]),
        ...claims.flatMap(({ consumer, wanted: units }) => [consumer, units]),
        ...returns.flatMap(({ consumer, window, by }) => [consumer, window, by]),
      )
      return {
        ...closureOf(closed),
        granted: wholeFrom(granted),
        spent: windows.map((_, i) => ({
          charged: wholeFrom(counts[2 * i]),
          refunded: wholeFrom(counts[2 * i + 1]),
        })),
        claims: claims.map((_, i) => ({
          granted: wholeFrom(claimed[2 * i]),
          heldIn: positionsIn(wholeFrom(claimed[2 * i + 1]), windows.length),
        })),
      }
    },
    reopen: async (provider, now) =>
      closureOf(await runReopen(names.closure(provider), now, longestClosureMs, clockToleranceMs)),
  }
}

/** The positions of the bits that are set. */
const positionsIn = (bits: number, length: number): number[] =>
  Array.from({ length }, (_, i) => i).filter(i => bits & (1 << i))

const closureOf = ([until, at, reason, reopened]: ClosureReply): {
  closure: Closure | null
  reopenedAt: number
} => ({
  closure:
    until === 0
      ? null
      : { until: wholeFrom(until), at: wholeFrom(at), reason: safeText(reason, longestReason) },
  reopenedAt: wholeFrom(reopened),
})
