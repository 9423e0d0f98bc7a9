// Running instances report their units again to a Redis that has lost its counts. Foreign sequence numbers stop no instance
// from counting.

import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/common/clock.ts'
import { createMeter } from '../../src/keys/meter.ts'
import { reconcileForMs } from '../../src/keys/outage.ts'
import { localDays } from '../../src/keys/window.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startRedisFor, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const endsAt = Date.now() + 43_200_000
const metered = { day: '2026-11-21', endsAt }

/** A meter on a Redis, with the store behind it; both are closed with the test. */
const openMeter = async (
  t: Test,
  url: string,
  {
    whenStoreIsDown,
    instances = 1,
    onAway = () => {},
    clock = systemClock,
  }: {
    whenStoreIsDown: 'refuse' | 'share'
    instances?: number
    onAway?: (reason: string) => void
    clock?: Clock
  },
) => {
  const store = await openRedisStore(
    { url, prefix: 'x:', connectTimeoutMs: 10_000, commandTimeoutMs: 10_000 },
    { redisAway: () => {}, redisBack: () => {} },
  )
  const meter = createMeter({
    store,
    whenStoreIsDown,
    instances: () => instances,
    windows: localDays({ dayOf: () => metered.day, nextMidnight: () => metered.endsAt }, 86_400_000),
    keepUsageForMs: 86_400_000,
    clock,
    observer: { storeAway: onAway, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
  })
  t.teardown(async () => {
    await meter.close()
    await store.close()
  })
  return { store, meter }
}

/** Ends the subscriptions of so many stores, each of which has one by then: before, there would be nothing to lose. */
const endSubscriptions = async (raw: Redis, stores: number) => {
  await until(
    'each is subscribed',
    async () => String(await raw.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).split('id=').length - 1 === stores,
    60_000,
    20,
  )
  await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
}

t.test(
  'the count of two instances is right again after each has sent one more batch',
  { skip: withoutOwnRedis },
  async t => {
    const { url, raw } = await startRedisFor(t)
    const open = async () => {
      const { store, meter } = await openMeter(t, url, { whenStoreIsDown: 'refuse', instances: 2 })
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
    const { url, raw } = await startRedisFor(t)
    const away: string[] = []
    const { store, meter } = await openMeter(t, url, {
      whenStoreIsDown: 'share',
      onAway: reason => away.push(reason),
    })
    const keys = Array.from({ length: 20 }, (_, i) => `key_${i}`)
    const round = () => Promise.all(keys.map(key => meter.consume({ keyId: key, limit: 100 }, Date.now())))
    await round()
    for (let turn = 1; turn <= 5; turn++) {
      const [live = ''] = await raw.keys('x:quota:*')
      for (const [i, keyId] of keys.entries()) {
        const [, instance] = /^\d+ (\w+):/.exec((await raw.hget(live, keyId)) ?? '') ?? []
        // From a few batches ahead to more than any instance sends.
        await raw.hset(live, keyId, `${turn} ${instance}:${10 ** (turn * 3) + i}:${turn}`)
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

t.test(
  'after a lost subscription all counts are reported in steps, and those that are lost are there again',
  { skip: withoutOwnRedis },
  async t => {
    const { url, raw } = await startRedisFor(t)
    const open = () => openMeter(t, url, { whenStoreIsDown: 'share', instances: 2 })
    const [{ store, meter }, other] = [await open(), await open()]
    const keys = 3_000
    const admit = (of: typeof meter, from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, i) =>
          of.consume({ keyId: `key_${from + i}`, limit: 100 }, Date.now()),
        ),
      )
    await admit(meter, 0, keys)
    await admit(other.meter, 0, 10)
    /** Entries that the store is given from now on, by batch. */
    const given: number[] = []
    const { commit } = store
    store.commit = batch => {
      given.push(batch.entries.length)
      return commit(batch)
    }
    const probe = async () => {
      await Promise.all([meter.probe(), other.meter.probe()])
      return meter.state() === 'counting' && other.meter.state() === 'counting'
    }
    const usedBy = async (...keyIds: string[]) =>
      Promise.all(keyIds.map(async keyId => (await store.usedOn(keyId, [metered.day]))[0]))
    const loseSubscriptions = async () => {
      // A connection that has not held since the last loss has nothing more to lose.
      const arrive = () => [store, other.store].every(({ usageMessagesArrive }) => usageMessagesArrive())
      await until('messages arrive again', arrive, 60_000)
      given.length = 0
      await endSubscriptions(raw, 2)
      await until('the loss is noticed', async () => meter.state() === 'reconciling', 60_000)
      await until('both count again', probe, 60_000, 20)
      t.ok(Math.max(...given) <= 100, 'in steps that let requests pass')
      t.ok(given.reduce((sum, entries) => sum + entries, 0) >= keys, 'all of them')
    }
    // As counts that somebody removed, with their sums.
    for (const hash of [...(await raw.keys('x:quota:*')), ...(await raw.keys('x:used:*'))])
      await raw.hdel(hash, 'key_7', 'key_2990')
    await loseSubscriptions()
    t.strictSame(await usedBy('key_7', 'key_2990', 'key_8', 'key_11'), [2, 1, 2, 1])

    // As a Redis that was restarted without its file.
    await raw.flushall()
    await loseSubscriptions()
    t.strictSame(await usedBy('key_7', 'key_2998'), [2, 1])
  },
)

t.test(
  'a Redis that has lost its counts gets all of them before anything is counted again',
  { skip: withoutOwnRedis },
  async t => {
    const { url, raw } = await startRedisFor(t)
    // Reconciling lasts as long as the test says.
    const clock = manualClock(Date.now())
    const open = () => openMeter(t, url, { whenStoreIsDown: 'share', instances: 2, clock })
    const [{ store, meter: one }, { meter: other }] = [await open(), await open()]
    const admit = async (meter: typeof one, times: number) =>
      (
        await Promise.all(
          Array.from({ length: times }, () => meter.consume({ keyId: 'key_1', limit: 100 }, clock.now())),
        )
      ).filter(({ allowed }) => allowed).length
    t.equal((await admit(one, 60)) + (await admit(other, 40)), 100)
    await raw.flushall()
    await endSubscriptions(raw, 2)
    const states = () => [one.state(), other.state()]
    // The clock stands still, so that neither is done with it before the other one has noticed.
    await until('both have noticed', () => states().every(state => state === 'reconciling'), 60_000)
    for (let i = 0; i < 5 && states().includes('reconciling'); i++) {
      clock.advance(reconcileForMs)
      await Promise.all([one.probe(), other.probe()])
    }
    t.strictSame(states(), ['counting', 'counting'])
    t.equal((await admit(one, 50)) + (await admit(other, 50)), 0, 'the limit holds')
    t.strictSame(await store.usedOn('key_1', [metered.day]), [100])
  },
)

t.test(
  'with `refuse`, too, nothing is admitted until every instance has reported to a Redis that came back empty',
  { skip: withoutOwnRedis },
  async t => {
    const { url, raw } = await startRedisFor(t)
    const clock = manualClock(Date.now())
    const open = () => openMeter(t, url, { whenStoreIsDown: 'refuse', instances: 2, clock })
    const [one, other] = [await open(), await open()]
    const admit = async ({ meter }: typeof one, times: number): Promise<number> => {
      const asked = Array.from({ length: times }, () =>
        meter.consume({ keyId: 'key_1', limit: 60 }, clock.now()),
      )
      return (await Promise.allSettled(asked)).filter(
        each => each.status === 'fulfilled' && each.value.allowed,
      ).length
    }
    t.equal((await admit(one, 30)) + (await admit(other, 20)), 50)
    await raw.flushall()
    await endSubscriptions(raw, 2)
    // No command of theirs failed, and the one that comes back first knows of 30.
    await until('the first has noticed', async () => {
      await one.meter.probe()
      return one.meter.state() !== 'counting'
    })
    t.equal(await admit(one, 40), 0)
    await until('all count again', async () => {
      await Promise.all([one.meter.probe(), other.meter.probe()])
      clock.advance(500)
      return [one, other].every(({ meter }) => meter.state() === 'counting')
    })
    t.equal((await admit(one, 40)) + (await admit(other, 40)), 10)
    t.strictSame(await one.store.usedOn('key_1', [metered.day]), [60])
  },
)
