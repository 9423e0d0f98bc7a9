// Loads over a fleet on a real Redis: one holds, the others hear; a holder that dies lets go; a Redis that goes away
// costs a load and no answer.

import t, { type Test } from 'tap'
import { createJointFlight } from '../../src/cache/joint-flight.ts'
import { AbohawaError } from '../../src/errors.ts'
import { openRedisStore } from '../../src/stores/redis.ts'
import type { Store } from '../../src/stores/store.ts'
import { startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const options = { connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 }
const silent = { redisAway: () => {}, redisBack: () => {} }

/** Two instances on one Redis, which share `landed`, as they share the bytes of the second tier. */
const setUp = async (t: Test, { url, prefix }: { url: string; prefix: string }, holdForMs = 60_000) => {
  const landed = new Map<string, string>()
  const errors: unknown[] = []
  const instance = async () => {
    const store = await openRedisStore({ ...options, url, prefix }, silent)
    const flights = createJointFlight({ store, holdForMs }, error => errors.push(error))
    t.teardown(async () => {
      flights.close()
      await store.close()
    })
    await listening(store)
    const run = (key: string, load: (token: number | undefined) => Promise<string>) =>
      flights.run(key, {
        load: async token => {
          const value = await load(token)
          landed.set(key, value)
          return value
        },
        arrived: async () => landed.get(key),
      })
    return { run, store }
  }
  return { one: await instance(), other: await instance(), errors, landed }
}

/** Resolves once the store hears what is told to all. */
const listening = async (store: Store): Promise<void> => {
  let heard = false
  const stop = store.onFlightEnd(key => {
    heard ||= key === 'probe'
  })
  await until('the store hears the news', async () => {
    await store.endFlight('probe', 0, '')
    return heard
  })
  stop()
}

/** A load that says when it has begun and ends when told. */
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

t.test('the second instance waits and gets what the first one loaded', async t => {
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

t.test('a load that fails fails for all who waited, with its code and its pause', async t => {
  const { one, other } = await setUp(t, await testRedis(t))
  const slow = gated('never')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  const error = Object.assign(new AbohawaError('provider_failing', 'it fails'), { retryAt: 12_345 })
  // The second asks for the flight before the first ends it: commands of one instance keep their order.
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
    'and nothing is held',
  )
})

t.test('what others say of a failure is believed within bounds, and never shown as it comes', async t => {
  const { one, other, landed } = await setUp(t, await testRedis(t), 300)
  const hear = async (news: string) => {
    landed.clear()
    const flight = await one.store.beginFlight('a', 60_000)
    const heard = other.run('a', async () => 'loaded here').catch((error: unknown) => error)
    // Asked for the flight before it ends: commands of one instance keep their order.
    await other.store.ping()
    await one.store.endFlight('a', flight.token ?? 0, news)
    return heard
  }
  const failure = {
    code: 'provider_failing',
    message: '\u001b[31m<b>down</b>\r\n'.repeat(100),
    retryAt: 12_345,
  }
  const found = (await hear(JSON.stringify(failure))) as AbohawaError
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
  await t.rejects(second, { name: 'FailedElsewhere', message: /^x{300}…$/ }, 'long news arrive, cut')
  for (const news of [
    '{',
    '[]',
    'null',
    '{"code":"provider_failing"}',
    '{"code":7,"message":"x"}',
    '{"code":"<script>","message":"x"}',
    `{"code":"${'x'.repeat(41)}","message":"x"}`,
  ])
    t.match(await hear(news), { result: 'loaded here', joined: false }, news)
})

t.test('a hold ends by itself when nobody prolongs it, and the next one has a greater token', async t => {
  const redis = await testRedis(t)
  const { one, other } = await setUp(t, redis, 300)
  const dead = await one.store.beginFlight('a', 300)
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
    'what the first one brings late is refused',
  )
  t.equal(String(await one.store.readBytes('a')), 'new')
})

t.test('a load that takes longer than a hold keeps it', async t => {
  const { one, other } = await setUp(t, await testRedis(t), 150)
  const slow = gated('slow')
  const first = one.run('a', slow.load)
  await slow.begun
  const second = other.run('a', async () => t.fail('it must not load') as never)
  // Many holds long: each look is a round trip, and what is held is never free in between.
  const end = performance.now() + 600
  while (performance.now() < end) {
    const { token } = await other.store.beginFlight('a', 150)
    if (token !== null) t.fail('the hold was lost')
  }
  slow.open()
  t.match(await second, { result: 'slow', joined: true })
  await first
})

t.test('when Redis goes away who waits goes alone, once', { skip: withoutOwnRedis }, async t => {
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
  t.ok(errors.length > 0, 'and it was told')
  t.match(await one.run('b', async () => 'still'), { result: 'still', joined: false })
})
