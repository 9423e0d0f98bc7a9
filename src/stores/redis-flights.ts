// Loads under way over a fleet, in Redis: who holds the load of a key, for how long, and the news of its end. A flight
// is one hash: the last token given, until when it is held by Redis's own clock, and the last token that wrote bytes.

import type { Result } from 'ioredis'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { RedisListening } from './redis-listening.ts'
import type { FlightStore } from './store.ts'

// Longer than any holder can be stalled, so that tokens never start again while an old one may still come back.
const rememberMs = 3_600_000

const beginScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = tonumber(redis.call('HGET', KEYS[1], 'until') or '0')
if held > now then return { 0, held - now } end
local token = redis.call('HINCRBY', KEYS[1], 'token', 1)
redis.call('HSET', KEYS[1], 'until', now + ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { token, 0 }`

const holdScript = `
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'until', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 1`

// Whoever was overtaken has nothing to end, but its news may still help those who wait.
const endScript = `
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('HDEL', KEYS[1], 'until') end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

const writeScript = `
if tonumber(redis.call('HGET', KEYS[1], 'written') or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'written', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 1`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaBeginFlight(key: string, holdMs: number, rememberMs: number): Result<[number, number], Context>
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

/** @param bytesKey the key of the bytes that a flight writes, in the same slot as the flight itself */
export const redisFlights = (
  redis: RedisClient,
  {
    flightKey,
    bytesKey,
    channel,
  }: Record<'flightKey' | 'bytesKey', (name: string) => string> & { channel: string },
  attempt: Attempt,
  listen: RedisListening['listen'],
): RedisFlights => {
  redis.defineCommand('abohawaBeginFlight', { numberOfKeys: 1, lua: beginScript })
  redis.defineCommand('abohawaHoldFlight', { numberOfKeys: 1, lua: holdScript })
  redis.defineCommand('abohawaEndFlight', { numberOfKeys: 1, lua: endScript })
  redis.defineCommand('abohawaWriteFenced', { numberOfKeys: 2, lua: writeScript })

  return {
    beginFlight: (name, holdMs) =>
      attempt(async () => {
        const [token, heldForMs] = await redis.abohawaBeginFlight(flightKey(name), holdMs, rememberMs)
        return token === 0 ? { token: null, heldForMs } : { token, heldForMs: 0 }
      }),
    holdFlight: (name, token, holdMs) =>
      attempt(async () => (await redis.abohawaHoldFlight(flightKey(name), token, holdMs)) === 1),
    endFlight: (name, token, news) =>
      attempt(async () => {
        await redis.abohawaEndFlight(flightKey(name), token, channel, `${name} ${news}`)
      }),
    onFlightEnd: listener => {
      const missed = () => listener(null, '')
      return listen(channel, {
        message: text => {
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
        const keys = [flightKey(name), bytesKey(name)] as const
        return (await redis.abohawaWriteFenced(...keys, token, bytes, expiresAt, rememberMs)) === 1
      }),
  }
}
