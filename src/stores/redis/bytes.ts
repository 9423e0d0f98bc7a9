// The shared cache tier in Redis: its entries, and the leases of the loads that write them. A lease is one key with the name of
// its holder, which expires; after a load that failed it holds the failure for a moment.

import { failureKeptMs, maxBytesRead } from '../records.ts'
import type { ByteStore, LeaseStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { isWrongType, scriptOn } from './server.ts'

// ARGV: the holder, the length of the lease, and 1 to acquire it over a failure. Returns the text of a failure, or one word.
const acquireScript = `
local found = redis.call('GETRANGE', KEYS[1], 0, -1)
local failed = string.sub(found, 1, 1) == '{'
if found ~= '' and found ~= ARGV[1] and not (failed and ARGV[3] == '1') then return failed and found or 'held' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'acquired'`

const renewScript = `
if redis.call('GETRANGE', KEYS[1], 0, -1) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

// ARGV: the holder, and the failure, empty after a load that succeeded.
const releaseScript = `
if redis.call('GETRANGE', KEYS[1], 0, -1) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ${failureKeptMs})
return 1`

const writeScript = `
if redis.call('GETRANGE', KEYS[1], 0, -1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 1`

export const redisBytes = ({ redis, names }: RedisParts): ByteStore & LeaseStore => {
  const acquire = scriptOn<string>(redis, 'abohawaAcquireLease', 1, acquireScript)
  const renew = scriptOn<number>(redis, 'abohawaRenewLease', 1, renewScript)
  const release = scriptOn<number>(redis, 'abohawaReleaseLease', 1, releaseScript)
  const write = scriptOn<number>(redis, 'abohawaWriteAsHolder', 2, writeScript)

  return {
    acquireLease: async (name, holder, leaseMs, overFailure = false) => {
      const reply = await acquire(names.lease(name), holder, leaseMs, overFailure ? 1 : 0)
      if (reply === 'acquired') return 'acquired'
      return reply === 'held' ? reply : { failure: reply }
    },
    renewLease: async (name, holder, leaseMs) => (await renew(names.lease(name), holder, leaseMs)) === 1,
    releaseLease: async (name, holder, failure = '') =>
      void (await release(names.lease(name), holder, failure)),
    readBytes: async (name, most = maxBytesRead) => {
      try {
        // One byte more than allowed shows that the value is larger.
        const bytes = await redis.getrangeBuffer(names.bytes(name), 0, most)
        if (bytes.length === 0) return undefined
        return bytes.length > most ? 'too_large' : bytes
      } catch (error) {
        if (isWrongType(error)) return 'wrong_type'
        throw error
      }
    },
    writeBytes: async (name, bytes, expiresAt, holder) => {
      const key = names.bytes(name)
      if (holder !== undefined) return (await write(names.lease(name), key, holder, bytes, expiresAt)) === 1
      await redis.set(key, bytes, 'PXAT', expiresAt)
      return true
    },
    // One command per key, because on a cluster they lie in different slots.
    hasBytes: async entries => {
      const found = await Promise.all(entries.map(name => redis.exists(names.bytes(name))))
      return found.map(count => count > 0)
    },
    deleteBytes: async entries => {
      const removed = await Promise.all(entries.map(name => redis.unlink(names.bytes(name))))
      return removed.reduce((sum, count) => sum + count, 0)
    },
  }
}
