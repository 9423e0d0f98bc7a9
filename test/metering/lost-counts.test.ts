// Instances that run report their units again to a Redis that lost its counts. Sequences that somebody else wrote stop no
// instance from counting.

import { Redis } from 'ioredis'
import t from 'tap'
import { createMeter } from '../../src/metering/meter.ts'
import { openRedisStore } from '../../src/stores/redis.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'

const endsAt = Date.now() + 43_200_000
const metered = { day: '2026-11-21', endsAt, keepUntil: endsAt + 86_400_000 }
const quiet = { redisAway: () => {}, redisBack: () => {} }

t.test(
  'the count of two instances is right again after each has sent one more batch',
  { skip: withoutOwnRedis },
  async t => {
    const redis = await startRedis()
    t.teardown(redis.stop)
    const raw = new Redis(redis.url)
    t.teardown(() => raw.quit())
    const options = { url: redis.url, prefix: 'x:', connectTimeoutMs: 10_000, commandTimeoutMs: 10_000 }
    const open = async () => {
      const store = await openRedisStore(options, quiet)
      const meter = createMeter({
        store,
        whenStoreIsDown: 'refuse',
        instances: () => 2,
        calendar: { dayOf: () => metered.day, nextMidnight: () => metered.endsAt },
        keepUsageForMs: 86_400_000,
        clock: Date,
        observer: { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
      })
      t.teardown(async () => {
        await meter.close()
        await store.close()
      })
      const admit = async (times: number) =>
        (
          await Promise.all(
            Array.from({ length: times }, () => meter.consume({ keyId: 'key_1', limit: 100 }, Date.now())),
          )
        ).filter(({ allowed }) => allowed).length
      const used = async () => (await store.usedOn('key_1', [metered.day]))[0]
      return { admit, used }
    }
    const [one, other] = [await open(), await open()]
    await one.admit(30)
    await other.admit(20)
    t.equal(await one.used(), 50)
    await raw.flushall()
    t.equal(await one.used(), 0)
    await one.admit(1)
    t.equal(await one.used(), 31, 'the other has not reported yet')
    await other.admit(1)
    t.equal(await one.used(), 52)
    t.equal((await one.admit(60)) + (await other.admit(60)), 48, 'and the limit holds')
    t.equal(await other.used(), 100)
  },
)

t.test(
  'sequences that no instance wrote, in every key of a batch, cost two tries and no count',
  { skip: withoutOwnRedis },
  async t => {
    const redis = await startRedis()
    t.teardown(redis.stop)
    const raw = new Redis(redis.url)
    t.teardown(() => raw.quit())
    const options = { url: redis.url, prefix: 'x:', connectTimeoutMs: 10_000, commandTimeoutMs: 10_000 }
    const store = await openRedisStore(options, quiet)
    const away: string[] = []
    const meter = createMeter({
      store,
      whenStoreIsDown: 'share',
      instances: () => 1,
      calendar: { dayOf: () => metered.day, nextMidnight: () => metered.endsAt },
      keepUsageForMs: 86_400_000,
      clock: Date,
      observer: {
        storeAway: reason => away.push(reason),
        storeBack: () => {},
        unitsLost: () => {},
        nearLimit: () => {},
      },
    })
    t.teardown(async () => {
      await meter.close()
      await store.close()
    })
    const keys = Array.from({ length: 20 }, (_, i) => `key_${i}`)
    const round = () => Promise.all(keys.map(key => meter.consume({ keyId: key, limit: 100 }, Date.now())))
    await round()
    for (let turn = 1; turn <= 5; turn++) {
      for (const [i, live] of (await raw.keys('x:quota:*')).entries()) {
        const [instance = ''] = (await raw.hkeys(live)).filter(field => field !== 'used')
        // From a few batches ahead to more than any instance sends.
        await raw.hset(live, instance, `${10 ** (turn * 3) + i} ${turn}`)
      }
      const decisions = await round()
      t.ok(
        decisions.every(({ allowed, remaining }) => allowed && remaining === 99 - turn),
        `round ${turn}: ${JSON.stringify(decisions.slice(0, 3))}`,
      )
    }
    t.strictSame(away, [], 'nobody counted alone')
    t.strictSame(await store.usedOn('key_7', [metered.day]), [6])
  },
)
