// Loads under way over a fleet, in Redis: who holds the load of a key, for how long, and the news of its end. A flight
// is one hash: the last token given, until when it is held by Redis's own clock, and the last token that wrote bytes.
// A flight whose fields can't be right holds nothing: its key is loaded as if nobody had begun.

import type { Result } from 'ioredis'
import { longestHoldMs, longestMessage, shown, wholeFrom } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import type { RedisListening } from './redis-listening.ts'
import { recordsLua } from './redis-records.ts'
import type { FlightStore } from './store.ts'

// Longer than any holder can be stalled, so that tokens never start again while an old one may still come back.
const rememberMs = 3_600_000

// A token that can't be read begins again at the time in ms, which is above any that was given by counting. ARGV: how
// long it is held, how long it is remembered, and the longest that anyone may hold. Answers the token, how long another
// holds it, and 1 if something was wrong.
const beginScript = `${recordsLua}
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local found = pcall('HMGET', KEYS[1], 'until', 'token', 'written')
if found.err then
  if not isOtherType(found) then return found end
  call('DEL', KEYS[1])
end
local held, token, written = whole(found[1] or '0'), whole(found[2] or '0'), whole(found[3] or '0')
local isWhole = not found.err and held and token and written and written <= token
  and held - now <= tonumber(ARGV[3])
if isWhole and held > now then return { 0, held - now, 0 } end
if not isWhole and not found.err then call('HDEL', KEYS[1], 'until', 'written') end
token = (token and not found.err and token or now) + 1
call('HSET', KEYS[1], 'token', text('%d', token), 'until', text('%d', now + ARGV[1]))
call('PEXPIRE', KEYS[1], ARGV[2])
return { token, 0, isWhole and 0 or 1 }`

const holdScript = `
if redis.pcall('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'until', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 1`

// Whoever was overtaken has nothing to end, but its news may still help those who wait.
const endScript = `
if redis.pcall('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('HDEL', KEYS[1], 'until') end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

const writeScript = `${recordsLua}
local written = pcall('HGET', KEYS[1], 'written')
if type(written) == 'table' then
  if not isOtherType(written) then return written end
  call('DEL', KEYS[1])
elseif (whole(written) or 0) > tonumber(ARGV[1]) then return 0 end
call('HSET', KEYS[1], 'written', ARGV[1])
call('PEXPIRE', KEYS[1], ARGV[4])
call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 1`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaBeginFlight(
      key: string,
      holdMs: number,
      rememberMs: number,
      longestHoldMs: number,
    ): Result<number[], Context>
    abohawaHoldFlight(key: string, token: number, holdMs: number): Result<number, Context>
    abohawaEndFlight(key: string, token: number, channel: string, news: string): Result<number, Context>
    abohawaWriteFenced(
      flight: string,
      bytesKey: string,
      token: number,
      bytes: Buffer,
      expiresAt: number,
      rememberMs: number,
    ): Result<number, Context>
  }
}

export type RedisFlights = FlightStore & {
  writeFenced(name: string, bytes: Buffer, expiresAt: number, token: number): Promise<boolean>
}

export const redisFlights = (
  { redis, names, attempt, observer }: RedisParts,
  listen: RedisListening['listen'],
): RedisFlights => {
  redis.defineCommand('abohawaBeginFlight', { numberOfKeys: 1, lua: beginScript })
  redis.defineCommand('abohawaHoldFlight', { numberOfKeys: 1, lua: holdScript })
  redis.defineCommand('abohawaEndFlight', { numberOfKeys: 1, lua: endScript })
  redis.defineCommand('abohawaWriteFenced', { numberOfKeys: 2, lua: writeScript })

  return {
    beginFlight: (name, holdMs) =>
      attempt(async () => {
        const reply = await redis.abohawaBeginFlight(names.flight(name), holdMs, rememberMs, longestHoldMs)
        const [token, heldForMs, isMended] = [wholeFrom(reply[0]), wholeFrom(reply[1]), reply[2] === 1]
        if (isMended)
          observer.recordRefused({
            record: 'flight',
            name: shown(names.flight(name)),
            fault: 'its fields can not be, and it was begun anew',
          })
        return token === 0 ? { token: null, heldForMs } : { token, heldForMs: 0 }
      }),
    holdFlight: (name, token, holdMs) =>
      attempt(async () => (await redis.abohawaHoldFlight(names.flight(name), token, holdMs)) === 1),
    endFlight: (name, token, news) =>
      attempt(async () => {
        await redis.abohawaEndFlight(names.flight(name), token, names.flightsChannel, `${name} ${news}`)
      }),
    onFlightEnd: listener => {
      const missed = () => listener(null, '')
      return listen(names.flightsChannel, {
        message: text => {
          if (text.length > longestMessage) {
            const fault = `it has ${text.length} characters`
            observer.recordRefused({ record: 'message', name: shown(names.flightsChannel), fault })
            return
          }
          // `key news`; keys have no blanks.
          const [key = '', ...news] = text.split(' ')
          listener(key, news.join(' '))
        },
        lost: missed,
        again: missed,
      })
    },
    writeFenced: (name, bytes, expiresAt, token) =>
      attempt(async () => {
        const keys = [names.flight(name), names.bytes(name)] as const
        return (await redis.abohawaWriteFenced(...keys, token, bytes, expiresAt, rememberMs)) === 1
      }),
  }
}
