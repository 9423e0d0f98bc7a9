// Leases of loads in Redis, for the fleet-wide single-flight. A lease is one hash: the last fencing token, its end by Redis's
// own clock, and the token of the last write. Invalid fields count as no lease. The release is published on a channel.

import type { Result } from 'ioredis'
import { longestLeaseMs, longestMessage, shown, wholeFrom } from '../records.ts'
import type { LeaseStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { recordsLua } from './records.ts'
import type { RedisSubscriptions } from './subscriptions.ts'

// Longer than any holder can stall, so that tokens never restart while an old holder may still write.
const rememberMs = 3_600_000

// An unreadable token restarts at the time in ms, which is above any token that was counted up. ARGV: the length of the
// lease, how long the hash is kept, and the longest valid lease, all in ms. Returns the token, the rest of another holder's
// lease in ms, and 1 if the hash was invalid.
const acquireScript = `${recordsLua}
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

const renewScript = `
if redis.pcall('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'until', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 1`

// A holder that lost its lease releases nothing, but its message still helps waiters.
const releaseScript = `
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
    abohawaAcquireLease(
      key: string,
      leaseMs: number,
      rememberMs: number,
      longestLeaseMs: number,
    ): Result<number[], Context>
    abohawaRenewLease(key: string, token: number, leaseMs: number): Result<number, Context>
    abohawaReleaseLease(key: string, token: number, channel: string, message: string): Result<number, Context>
    abohawaWriteFenced(
      lease: string,
      bytesKey: string,
      token: number,
      bytes: Buffer,
      expiresAt: number,
      rememberMs: number,
    ): Result<number, Context>
  }
}

export type RedisLeases = LeaseStore & {
  writeFenced(name: string, bytes: Buffer, expiresAt: number, token: number): Promise<boolean>
}

export const redisLeases = (
  { redis, names, attempt, observer }: RedisParts,
  subscribe: RedisSubscriptions['subscribe'],
): RedisLeases => {
  redis.defineCommand('abohawaAcquireLease', { numberOfKeys: 1, lua: acquireScript })
  redis.defineCommand('abohawaRenewLease', { numberOfKeys: 1, lua: renewScript })
  redis.defineCommand('abohawaReleaseLease', { numberOfKeys: 1, lua: releaseScript })
  redis.defineCommand('abohawaWriteFenced', { numberOfKeys: 2, lua: writeScript })

  return {
    acquireLease: (name, leaseMs) =>
      attempt(async () => {
        const reply = await redis.abohawaAcquireLease(names.lease(name), leaseMs, rememberMs, longestLeaseMs)
        const [token, remainingMs, wasInvalid] = [wholeFrom(reply[0]), wholeFrom(reply[1]), reply[2] === 1]
        if (wasInvalid)
          observer.recordRefused({
            record: 'lease',
            name: shown(names.lease(name)),
            fault: 'its fields are invalid, and it was reset',
          })
        return token === 0 ? { token: null, remainingMs } : { token, remainingMs: 0 }
      }),
    renewLease: (name, token, leaseMs) =>
      attempt(async () => (await redis.abohawaRenewLease(names.lease(name), token, leaseMs)) === 1),
    releaseLease: (name, token, message) =>
      attempt(async () => {
        await redis.abohawaReleaseLease(names.lease(name), token, names.leasesChannel, `${name} ${message}`)
      }),
    onLeaseReleased: listener => {
      const resync = () => listener(null, '')
      return subscribe(names.leasesChannel, {
        onMessage: text => {
          if (text.length > longestMessage) {
            const fault = `it has ${text.length} characters`
            observer.recordRefused({ record: 'message', name: shown(names.leasesChannel), fault })
            return
          }
          // `key message`; keys have no blanks.
          const [key = '', ...message] = text.split(' ')
          listener(key, message.join(' '))
        },
        onLost: resync,
        onSubscribed: resync,
      })
    },
    writeFenced: (name, bytes, expiresAt, token) =>
      attempt(async () => {
        const keys = [names.lease(name), names.bytes(name)] as const
        return (await redis.abohawaWriteFenced(...keys, token, bytes, expiresAt, rememberMs)) === 1
      }),
  }
}
