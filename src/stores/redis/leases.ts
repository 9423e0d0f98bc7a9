// Leases of loads in Redis, for the fleet-wide single-flight: one key with the name of its holder, which expires. After a load
// that failed it holds the failure for a moment. What no gateway can have written counts as no lease.

import { failureKeptMs, longestLeaseMs, longestMessage, shown } from '../records.ts'
import type { LeaseStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { namesLua, scriptOn } from './records.ts'

// ARGV: the holder, the length of the lease, and 1 to acquire it over a failure. Returns a failure as it stands, or one word.
const acquireScript = `${namesLua}
local found, left = pcall('GETRANGE', KEYS[1], 0, ${longestMessage}), call('PTTL', KEYS[1])
local isOurs = type(found) == 'string' and #found <= ${longestMessage} and left >= 0 and left <= ${longestLeaseMs}
local failed = isOurs and string.sub(found, 1, 1) == '{'
if isOurs and found ~= ARGV[1] and not (failed and ARGV[3] == '1') then return failed and found or 'held' end
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return (isOurs or left == -2) and 'acquired' or 'reset'`

const renewScript = `
if redis.pcall('GETRANGE', KEYS[1], 0, ${longestMessage}) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

// ARGV: the holder, and the failure, empty after a load that succeeded.
const releaseScript = `
if redis.pcall('GETRANGE', KEYS[1], 0, ${longestMessage}) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ${failureKeptMs})
return 1`

const writeScript = `
if redis.pcall('GETRANGE', KEYS[1], 0, ${longestMessage}) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 1`

export type RedisLeases = LeaseStore & {
  writeAsHolder(name: string, bytes: Buffer, expiresAt: number, holder: string): Promise<boolean>
}

export const redisLeases = ({ redis, names, attempt, observer }: RedisParts): RedisLeases => {
  const acquire = scriptOn<string>(redis, 'abohawaAcquireLease', 1, acquireScript)
  const renew = scriptOn<number>(redis, 'abohawaRenewLease', 1, renewScript)
  const release = scriptOn<number>(redis, 'abohawaReleaseLease', 1, releaseScript)
  const write = scriptOn<number>(redis, 'abohawaWriteAsHolder', 2, writeScript)

  return {
    acquireLease: (name, holder, leaseMs, overFailure = false) =>
      attempt(async () => {
        const lease = names.lease(name)
        const reply = await acquire(lease, holder, leaseMs, overFailure ? 1 : 0)
        if (reply === 'reset')
          observer.recordRefused({
            record: 'lease',
            name: shown(lease),
            fault: 'no gateway wrote it, and it was reset',
          })
        if (reply === 'acquired' || reply === 'reset') return 'acquired'
        return reply === 'held' ? reply : { failure: reply }
      }),
    renewLease: (name, holder, leaseMs) =>
      attempt(async () => (await renew(names.lease(name), holder, leaseMs)) === 1),
    releaseLease: (name, holder, failure = '') =>
      attempt(async () => void (await release(names.lease(name), holder, failure))),
    writeAsHolder: (name, bytes, expiresAt, holder) =>
      attempt(async () => {
        const keys = [names.lease(name), names.bytes(name)] as const
        return (await write(...keys, holder, bytes, expiresAt)) === 1
      }),
  }
}
