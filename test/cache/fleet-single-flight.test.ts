// The fleet-wide single-flight on a real Redis: one instance holds the lease, the others wait; the lease of a dead holder
// expires; an outage of Redis costs a load and no answer.

import t, { type Test } from 'tap'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { AbohawaError } from '../../src/errors.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const options = { connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 }
const silent = { redisAway: () => {}, redisBack: () => {} }

/** Two instances on one Redis. `stored` stands for the shared tier. */
const setUp = async (t: Test, { url, prefix }: { url: string; prefix: string }, leaseForMs = 60_000) => {
  const stored = new Map<string, string>()
  const errors: unknown[] = []
  const instance = async () => {
    const store = await openRedisStore({ ...options, url, prefix }, silent)
    const fleet = createFleetSingleFlight({ store, leaseForMs }, error => errors.push(error))
    t.teardown(async () => {
      fleet.close()
      await store.close()
    })
    await subscribed(store)
    const run = (key: string, load: (token: number | undefined) => Promise<string>) =>
      fleet.run(key, {
        load: async token => {
          const value = await load(token)
          stored.set(key, value)
          return value
        },
        arrived: async () => stored.get(key),
      })
    return { run, store }
  }
  return { one: await instance(), other: await instance(), errors, stored }
}

/** Resolves once the subscription of the store is active. */
const subscribed = async (store: Store): Promise<void> => {
  let released = false
  const stop = store.onLeaseReleased(key => {
    released ||= key === 'probe'
  })
  await until('the subscription is active', async () => {
    await store.releaseLease('probe', 0, '')
    return released
  })
  stop()
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
  const elsewhere = other.run('b', async () => 'another key')
  t.strictSame(await elsewhere, { result: 'another key', joined: false }, 'keys do not wait for each other')
  slow.open()
  t.strictSame(await Promise.all([first, second]), [
    { result: 'first', joined: false },
    { result: 'first', joined: true },
  ])
})

t.test('a failed load fails for all waiters, with its code and its backoff', async t => {
  const { one, other } = await setUp(t, await testRedis(t))
  const slow = gated('never')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  const error = Object.assign(new AbohawaError('provider_failing', 'it fails'), { retryAt: 12_345 })
  // The second instance requests the lease before the first releases it: commands of one instance keep their order.
  await other.store.ping()
  slow.fail(error)
  await t.rejects(first, { code: 'provider_failing' })
  await t.rejects(second, {
    name: 'FailedElsewhere',
    code: 'provider_failing',
    message: 'it fails',
    retryAt: 12_345,
  })
  t.match(
    await other.run('a', async () => 'again'),
    { result: 'again', joined: false },
    'and the lease is free',
  )
})

t.test('the failure in a message is validated, cut and escaped', async t => {
  const { one, other, stored } = await setUp(t, await testRedis(t), 300)
  const release = async (message: string) => {
    stored.clear()
    const lease = await one.store.acquireLease('a', 60_000)
    const outcome = other.run('a', async () => 'loaded here').catch((error: unknown) => error)
    // Requests the lease before it is released: commands of one instance keep their order.
    await other.store.ping()
    await one.store.releaseLease('a', lease.token ?? 0, message)
    return outcome
  }
  const failure = {
    code: 'provider_failing',
    message: '\u001b[31m<b>down</b>\r\n'.repeat(100),
    retryAt: 12_345,
  }
  const found = (await release(JSON.stringify(failure))) as AbohawaError
  t.match(found, { name: 'FailedElsewhere', code: 'provider_failing', retryAt: 12_345 })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no such character is to be there
  t.ok(found.message.length <= 301 && !/[\u0000-\u001f]/.test(found.message), found.message)
  const own = Object.assign(new AbohawaError('provider_failing', 'x'.repeat(100_000)))
  const slow = gated('never')
  const first = one.run('b', slow.load)
  await slow.begun
  const second = other.run('b', async () => t.fail('it must not load') as never)
  await other.store.ping()
  slow.fail(own)
  await t.rejects(first, { code: 'provider_failing' })
  await t.rejects(second, { name: 'FailedElsewhere', message: /^x{300}…$/ }, 'a long message arrives, cut')
  for (const message of [
    '{',
    '[]',
    'null',
    '{"code":"provider_failing"}',
    '{"code":7,"message":"x"}',
    '{"code":"<script>","message":"x"}',
    `{"code":"${'x'.repeat(41)}","message":"x"}`,
  ])
    t.match(await release(message), { result: 'loaded here', joined: false }, message)
})

t.test('the code of a gateway of the previous version is translated', async t => {
  const { one, other } = await setUp(t, await testRedis(t))
  const lease = await one.store.acquireLease('a', 60_000)
  const waiting = other.run('a', async () => t.fail('it must not load') as never)
  await other.store.ping()
  await one.store.releaseLease('a', lease.token ?? 0, '{"code":"provider_resting","message":"it rests"}')
  await t.rejects(waiting, { code: 'provider_circuit_open' })
})

t.test('a lease that nobody renews expires, and the next one has a greater fencing token', async t => {
  const redis = await testRedis(t)
  const { one, other } = await setUp(t, redis, 300)
  const dead = await one.store.acquireLease('a', 300)
  t.ok(dead.token)
  let token: number | undefined
  const taken = await other.run('a', async given => {
    token = given
    return 'taken over'
  })
  t.strictSame(taken, { result: 'taken over', joined: false })
  t.ok((token ?? 0) > (dead.token ?? 0), `${token} after ${dead.token}`)
  t.equal(await other.store.writeBytes('a', Buffer.from('new'), Date.now() + 60_000, token), true)
  t.equal(
    await one.store.writeBytes('a', Buffer.from('old'), Date.now() + 60_000, dead.token ?? 0),
    false,
    'the late write of the former holder is refused',
  )
  t.equal(String(await one.store.readBytes('a')), 'new')
})

t.test('a load that takes longer than a lease renews it', async t => {
  // Long enough that a machine under load renews it in time.
  const leaseForMs = 1_500
  const { one, other } = await setUp(t, await testRedis(t), leaseForMs)
  const slow = gated('slow')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  // Two leases long: each attempt is a round trip, and the lease is never free in between.
  const end = performance.now() + 2 * leaseForMs
  while (performance.now() < end) {
    const { token } = await other.store.acquireLease('a', leaseForMs)
    if (token !== null) t.fail('the lease was lost')
  }
  slow.open()
  t.match(await second, { result: 'slow', joined: true })
  await first
})

t.test('when Redis fails, a waiter loads for itself, once', { skip: withoutOwnRedis }, async t => {
  const own = await startRedis()
  const { one, other, errors } = await setUp(t, { url: own.url, prefix: 'x:' })
  const slow = gated('first')
  const first = one.run('a', slow.load)
  await slow.begun
  const alone = gated('alone')
  const second = other.run('a', alone.load)
  await other.store.ping()
  await own.stop()
  await alone.begun
  alone.open()
  t.strictSame(await second, { result: 'alone', joined: false })
  slow.open()
  t.strictSame(await first, { result: 'first', joined: false })
  t.equal(alone.loads(), 1)
  t.ok(errors.length > 0, 'and the error was reported')
  t.match(await one.run('b', async () => 'still'), { result: 'still', joined: false })
})
