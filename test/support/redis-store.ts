// Stores on the Redis of a test file, each with its own prefix and a client of the test beside it.

import { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { RefusedRecord } from '../../src/stores/records.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import type { TestRedis } from './redis-server.ts'
import { patienceMs } from './until.ts'

type Options = Parameters<typeof openRedisStore>[0]

/** Timeouts that no busy machine exceeds. */
export const patient = { connectTimeoutMs: patienceMs, commandTimeoutMs: patienceMs }

/** An observer of a connection that does nothing. */
export const quiet = { redisAway: () => {}, redisBack: () => {} }

/** Opens stores that end with a test, each with the records that it refused. */
export const redisStores = (
  { url, prefix: base }: Pick<TestRedis, 'url' | 'prefix'>,
  given: Partial<Options> = {},
) => {
  let opened = 0
  return async (t: Test) => {
    const prefix = `${base}${opened++}:`
    const refused: RefusedRecord[] = []
    const store = await openRedisStore(
      { ...patient, url, prefix, ...given },
      { ...quiet, recordRefused: record => refused.push(record) },
    )
    const raw = new Redis(url)
    t.teardown(async () => {
      await store.close()
      await raw.quit()
    })
    /** The names of all keys without the prefix, in their order. */
    const names = async () => (await raw.keys(`${prefix}*`)).map(key => key.slice(prefix.length)).sort()
    return { store, prefix, refused, raw, names }
  }
}
