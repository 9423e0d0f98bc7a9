// The token buckets of keys in Redis, as parts of the script that counts a batch. A key with limits by the second and minute has a hash:
// `at`, an instant of Redis' clock, and what each of its token buckets held then, such as `second`: `3.25`. The hash expires when all
// buckets are full again.

// After the instant at which the buckets are full.
const keepTokensMs = 1_000

/**
 * Reads the buckets of the keys that have any, as they are after what was spent without Redis. `free` is how many tokens every bucket of
 * a key has. Refilling must be as in token-bucket.ts. What can't be read is as if it were not there.
 */
export const readTokensLua = `
  local function number(value) return value and #value < 30 and find(value, '^[%d.]+$') and tonumber(value) end
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
  local from = 9
  for k = 3, #KEYS do
    local rate = { key = KEYS[k], names = {}, left = {}, room = {}, perMs = {}, spent = {}, free = math.huge, taken = 0 }
    for b = 1, tonumber(ARGV[from + 1]) do
      local n = from + 4 * b
      rate.names[b], rate.room[b], rate.perMs[b], rate.spent[b] = ARGV[n - 2], tonumber(ARGV[n - 1]), tonumber(ARGV[n]), tonumber(ARGV[n + 1])
    end
    local found = pcall('HMGET', rate.key, 'at', unpack(rate.names))
    if found.err then
      if not find(found.err, 'WRONGTYPE', 1, true) then return found end
      call('DEL', rate.key)
      found = {}
    end
    local elapsed = math.max(0, now - (number(found[1]) or now))
    for b, capacity in ipairs(rate.room) do
      local held = floor(((number(found[b + 1]) or capacity) + elapsed * rate.perMs[b]) * 1e9 + 0.5) / 1e9
      rate.left[b] = math.max(0, math.min(capacity, math.min(capacity, held) - rate.spent[b]))
      rate.free = math.min(rate.free, floor(rate.left[b]))
    end
    rates[tonumber(ARGV[from])] = rate
    ratesInOrder[#ratesInOrder + 1] = rate
    from = from + 2 + 4 * #rate.names
  end
`

/** Writes what is left of the buckets that a batch took from, with an expiry. */
export const putTokensLua = `
  for k, rate in ipairs(ratesInOrder) do
    local fields, fullIn, lefts = { 'at', text('%.3f', now) }, 0, {}
    for b, name in ipairs(rate.names) do
      local left = rate.left[b] - rate.taken
      lefts[b] = text('%.9f', left)
      fields[2 * b + 1], fields[2 * b + 2] = name, lefts[b]
      fullIn = math.max(fullIn, (rate.room[b] - left) / rate.perMs[b])
    end
    call('HSET', rate.key, unpack(fields))
    call('PEXPIRE', rate.key, text('%d', math.ceil(fullIn) + ${keepTokensMs}))
    tokens[k] = text('%d ', rate.taken) .. table.concat(lefts, ' ')
  end
`
