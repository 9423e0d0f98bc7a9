// Without it each gateway could load the same cell, or wait for a load that never ends.

import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { after, type Clock, systemClock } from '../../src/common/clock.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import type { LeaseStore } from '../../src/stores/store.ts'
import { startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { until } from '../support/until.ts'
import { workPerTurn } from './work-per-turn.ts'

/** Waiters look more often than usual: a busy machine must not make them miss a failure, which is kept for a moment. */
const clock: Clock = {
  ...systemClock,
  timers: {
    every: () => {
      throw new Error('nothing of it is periodic')
    },
    after: (_ms, work) => after(systemClock, 5, work),
  },
}

/** Two instances on one Redis. `stored` stands for the shared tier. */
const setUp = async (t: Test, { url, prefix }: { url: string; prefix: string }, leaseForMs = 60_000) => {
  const stored = new Map<string, string>()
  const errors: unknown[] = []
  const instance = async () => {
    const store = await openRedisStore({ ...patient, url, prefix }, quiet)
    const fleet = createFleetSingleFlight({ store, leaseForMs, clock }, error => errors.push(error))
    t.teardown(async () => {
      fleet.close()
      await store.close()
    })
    const run = (key: string, load: (holder: string | undefined) => Promise<string>, isOfAll = true) =>
      fleet.run(key, {
        load: async holder => {
          const value = await load(holder)
          stored.set(key, value)
          return value
        },
        arrived: async () => stored.get(key),
        isOfAll: () => isOfAll,
      })
    return { run, store }
  }
  return { one: await instance(), other: await instance(), errors, stored }
}

/** A load that resolves `begun` when it starts and ends on `open` or `fail`. */
const gated = (value: string) => {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  let loads = 0
  return {
    begun: begun.promise,
    open: gate.resolve,
    fail: gate.reject,
    loads: () => loads,
    load: async () => {
      loads += 1
      begun.resolve()
      await gate.promise
      return value
    },
  }
}

t.test('the second instance waits and gets the first one’s load', async t => {
  const { one, other } = await setUp(t, await testRedis(t))
  const slow = gated('first')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  const elsewhere = await other.run('b', async () => 'another key')
  t.strictSame(elsewhere, { result: 'another key', joined: false }, 'keys do not wait for each other')
  slow.open()
  t.strictSame(await Promise.all([first, second]), [
    { result: 'first', joined: false },
    { result: 'first', joined: true },
  ])
  const late = await one.run('a', async () => t.fail('another has just loaded it') as never)
  t.strictSame(late, { result: 'first', joined: true })
})

for (const isOfAll of [true, false])
  t.test(`a failed load fails ${isOfAll ? 'for all waiters' : 'for nobody else'}`, async t => {
    const { one, other } = await setUp(t, await testRedis(t))
    const slow = gated('never')
    const first = one.run('a', slow.load, isOfAll)
    await slow.begun
    const second = other.run('a', async () => 'for itself').catch((error: unknown) => error)
    await other.store.ping()
    // A long message arrives, cut.
    const down = new AbohawaError('provider_failing', 'x'.repeat(100_000))
    slow.fail(Object.assign(down, { retryAt: 12_345 }))
    await t.rejects(first, { code: 'provider_failing' })
    const failure = {
      name: 'FailedElsewhere',
      code: 'provider_failing',
      message: /^x{300}…$/,
      retryAt: 12_345,
    }
    t.match(await second, isOfAll ? failure : { result: 'for itself', joined: false })
    const again = await one.run('a', async () => 'again')
    t.hasStrict(again, { result: isOfAll ? 'again' : 'for itself' }, 'its own failure holds up none')
  })

t.test('the failure in a lease is validated, cut and escaped', async t => {
  const { one, other, stored } = await setUp(t, await testRedis(t), 300)
  const release = async (message: string) => {
    stored.clear()
    t.equal(await one.store.acquireLease('a', 'test', 60_000, true), 'acquired')
    const outcome = other.run('a', async () => 'loaded here').catch((error: unknown) => error)
    // Requests the lease before it is released: commands of one instance keep their order.
    await other.store.ping()
    await one.store.releaseLease('a', 'test', message)
    return outcome
  }
  const message = '\u001b[31m<b>down</b>\r\n'.repeat(100)
  const failure = { code: 'provider_failing', message, retryAt: 12_345 }
  const found = (await release(JSON.stringify(failure))) as AbohawaError
  t.hasStrict({ ...found }, { name: 'FailedElsewhere', code: 'provider_failing', retryAt: 12_345 })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no such character is to be there
  t.ok(found.message.length <= 301 && !/[\u0000-\u001f]/.test(found.message), found.message)
  for (const message of [
    '{',
    '{"code":"provider_failing"}',
    '{"code":7,"message":"x"}',
    '{"code":"<script>","message":"x"}',
    `{"code":"${'x'.repeat(41)}","message":"x"}`,
  ])
    t.hasStrict(await release(message), { result: 'loaded here', joined: false }, message)
})

t.test('a load that takes longer than a lease renews it', async t => {
  const redis = await testRedis(t)
  const { one, other } = await setUp(t, redis, 3_000)
  const raw = new Redis(redis.url)
  t.teardown(() => raw.quit())
  const slow = gated('slow')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  const [lease = ''] = await raw.keys(`${redis.prefix}*`)
  for (let renewal = 0; renewal < 2; renewal++) {
    // Lengthened by hand, so that a slow machine does not lose it: a renewal makes it as long as it was.
    await raw.pexpire(lease, 600_000)
    await until('it is renewed', async () => (await raw.pttl(lease)) <= 3_000)
  }
  slow.open()
  t.hasStrict(await second, { result: 'slow', joined: true })
  await first
})

t.test('very many leases are renewed in a third of their time, in parts, until their loads end', async t => {
  let [renewing, renewAll] = [(): void => {}, (): void => {}]
  const holders = new Map<string, string>()
  const store: LeaseStore = {
    acquireLease: async (key, holder) => {
      holders.set(key, holder)
      return 'acquired'
    },
    renewLease: async (key, holder, forMs) => {
      if (holders.get(key) === holder && forMs === 3_000) renewing()
      return true
    },
    releaseLease: async () => {},
  }
  const { setInterval: begin } = globalThis
  const recorded = (work: () => void, everyMs: number) => {
    t.equal(everyMs, 1_000)
    renewAll = work
    return begin(() => {}, 60_000)
  }
  t.intercept(globalThis, 'setInterval', { value: recorded })
  const fleet = createFleetSingleFlight({ store, leaseForMs: 3_000 }, error => t.fail(`${error}`))
  t.teardown(fleet.close)
  const gate = Promise.withResolvers<string>()
  const load = () => gate.promise
  const parts = { load, arrived: async () => undefined, isOfAll: () => true }
  const loads = Array.from({ length: 1_000 }, (_, i) => fleet.run(`k${i}`, parts))
  const { most, all } = await workPerTurn(async worked => {
    renewing = worked
    await turn()
    renewAll()
    for (let turns = 0; turns < 20; turns++) await turn()
  })
  t.strictSame([most, all], [100, 1_000])
  gate.resolve('loaded')
  await Promise.all(loads)
  renewing = () => t.fail('its load has ended')
  renewAll()
})

t.test('a waiter looks ten times a second, and loads when it gets the lease', async t => {
  const waits: number[] = []
  const after = (ms: number, work: () => unknown) => {
    waits.push(ms)
    setImmediate(work)
    return () => {}
  }
  let asked = 0
  const store: LeaseStore = {
    acquireLease: async () => {
      asked += 1
      return asked < 3 ? 'held' : 'acquired'
    },
    renewLease: async () => true,
    releaseLease: async () => {},
  }
  const clock = { now: () => 0, timers: { after, every: () => () => {} } }
  const fleet = createFleetSingleFlight({ store, leaseForMs: 60_000, clock }, error => t.fail(`${error}`))
  t.teardown(fleet.close)
  const load = async (): Promise<string> => 'loaded'
  const found = await fleet.run('a', { load, arrived: async () => undefined, isOfAll: () => true })
  t.strictSame([found, waits], [{ result: 'loaded', joined: false }, [100, 100]])
})

t.test('when Redis fails, a waiter loads for itself, once', { skip: withoutOwnRedis }, async t => {
  const own = await startRedis(t)
  const { one, other, errors } = await setUp(t, { url: own.url, prefix: 'x:' })
  const slow = gated('first')
  const first = one.run('a', slow.load)
  await slow.begun
  const alone = gated('alone')
  const second = other.run('a', alone.load)
  await other.store.ping()
  await own.kill()
  await alone.begun
  alone.open()
  t.strictSame(await second, { result: 'alone', joined: false })
  slow.open()
  t.strictSame(await first, { result: 'first', joined: false })
  t.equal(alone.loads(), 1)
  t.ok(errors.length > 0, 'and the error was reported')
  t.hasStrict(await one.run('b', async () => 'still'), { result: 'still', joined: false })
})
