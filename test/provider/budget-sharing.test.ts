// Budgets of two gateways on one real Redis, which fails, and loses counts and closures.

import { EventEmitter, once } from 'node:events'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { hourMs } from '../../src/common/calendar.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startRedisProcess } from '../support/redis-process.ts'
import { startRedis, type TestRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { closureIn } from '../support/spending.ts'
import { budgetOn, limit } from './budget-set-up.ts'

// Redis expires keys by its own clock, so the test's clock stays near it, in the middle of a minute and an hour.
const start = Math.floor(Date.now() / hourMs) * hourMs + hourMs / 2 + 30_000

const openTwo = async (t: Test, { url, prefix }: TestRedis) => {
  const clock = manualClock(start)
  const open = async () => {
    const connection = new EventEmitter()
    const store = await openRedisStore(
      { url, prefix, connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 },
      { redisAway: () => connection.emit('away'), redisBack: () => connection.emit('back') },
    )
    t.teardown(() => store.close())
    return { ...budgetOn(store, clock, { instances: () => 2, outageShare: 0.1 }), connection, store }
  }
  return { clock, gateways: [await open(), await open()] as const }
}

t.test('two gateways together never cross a limit, and see each other’s 429', async t => {
  const { gateways, clock } = await openTwo(t, await testRedis(t))
  const [one, two] = gateways
  const reservations = await Promise.all(
    Array.from({ length: 60 }, (_, i) => gateways[i % 2 ? 0 : 1].budget.reserve(1 + (i % 9), 'cold')),
  )
  t.equal(
    reservations.reduce((sum, { points }) => sum + points, 0),
    180,
  )
  await Promise.all(reservations.map(reservation => reservation.settle('answered')))
  await Promise.all(gateways.map(({ budget }) => budget.reconcile()))
  for (const { budget } of gateways)
    t.strictSame(
      budget.state().windows.map(({ name, used }) => `${name} ${used}`),
      ['minute 540', 'hour 540', 'day 540'],
    )
  clock.advance(60_000)
  await limit(one.budget, clock.now() + 20_000, 'daily')
  t.match(await two.budget.reserve(1, 'cold'), { points: 0, retryAt: clock.now() + 20_000 })
  clock.advance(20_000)
  t.match(await two.budget.reserve(1, 'cold'), { points: 1, retryAt: null })
})

t.test(
  'while Redis is away both spend their parts of what is set aside, and reconcile when Redis comes back empty',
  { skip: withoutOwnRedis },
  async t => {
    const redis = await startRedis()
    const { gateways, clock } = await openTwo(t, { url: redis.url, prefix: 'x:' })
    const [one, two] = gateways
    const before = await one.budget.reserve(100, 'cold')
    await before.settle('answered')
    await two.budget.reconcile()
    const away = gateways.map(({ connection }) => once(connection, 'away'))
    await redis.stop()
    await Promise.all(away)

    const reserveAll = () => Promise.all(gateways.map(({ budget }) => budget.reserve(999, 'cold')))
    const pointsOf = (reservations: Awaited<ReturnType<typeof reserveAll>>) =>
      reservations.map(({ points }) => points)
    const reservedLocally = await reserveAll()
    t.strictSame(pointsOf(reservedLocally), [10, 10], 'at once')
    await limit(one.budget, clock.now() + 5_000, 'daily')
    await reservedLocally[0]?.settle('unsent')
    await reservedLocally[1]?.settle('answered')
    t.equal((await two.budget.reserve(1, 'cold')).points, 0)
    for (const { budget, events } of gateways) {
      t.equal(budget.state().shared, false)
      t.strictSame(events, ['away'])
    }

    const back = gateways.map(({ connection }) => once(connection, 'back'))
    const again = await startRedis(redis.port)
    t.teardown(again.stop)
    await Promise.all(back)
    clock.advance(5_000)
    await one.budget.reconcile()
    t.equal((await two.budget.reserve(10, 'cold')).points, 10)
    t.equal((await one.budget.reserve(10, 'cold')).points, 10)
    for (const { budget, events } of gateways) {
      t.equal(budget.state().shared, true)
      t.strictSame(events, ['away', 'back'])
    }
    const used = one.budget.state().windows.map(({ used }) => used)
    t.strictSame(used, [390, 390, 390], 'the last known count, what was spent meanwhile, and both since')
  },
)

t.test(
  'a Redis that is killed and back at once, as of an earlier snapshot, gets back what the gateways knew',
  { skip: withoutOwnRedis },
  async t => {
    const redis = await startRedisProcess()
    t.teardown(redis.stop)
    const { gateways, clock } = await openTwo(t, { url: `redis://${redis.address}`, prefix: 'x:' })
    const [one, two] = gateways
    await (await one.budget.reserve(50, 'cold')).settle('answered')
    // Of 540, which is what remains of 600 without a tenth for outages.
    await redis.admin.save()
    await (await one.budget.reserve(100, 'cold')).settle('answered')
    await two.budget.reconcile()
    const until = clock.now() + 5_000
    const back = gateways.map(({ connection }) => once(connection, 'back'))
    await redis.kill()
    await redis.start()
    await Promise.all(back)
    t.equal((await two.budget.reserve(999, 'cold')).points, 30)
    t.equal((await one.budget.reserve(999, 'cold')).points, 0)
    await limit(one.budget, until, 'daily')
    await redis.admin.flushall()
    await one.budget.reconcile()
    t.match(await closureIn(two.store, 'acc1', clock.now()), { closedUntil: until, reason: 'daily' })
  },
)

t.test('a counter that is lost while the connection stands is reported again', async t => {
  const { url, prefix } = await testRedis(t)
  const { gateways } = await openTwo(t, { url, prefix })
  const [one, two] = gateways
  const lose = async () => {
    const raw = new Redis(url)
    await raw.del(...(await raw.keys(`${prefix}spending:*`)))
    await raw.quit()
  }
  await (await one.budget.reserve(150, 'cold')).settle('answered')
  await lose()
  t.equal((await one.budget.reserve(999, 'cold')).points, 30, 'with the next reservation')
  await lose()
  await one.budget.reconcile()
  await two.budget.reconcile()
  const usedOf = ({ budget }: typeof one) => budget.state().windows.map(({ used }) => used)
  t.strictSame(usedOf(two), [540, 540, 540], 'and with the next heartbeat')

  const { gateways: others } = await openTwo(t, await testRedis(t))
  const given = await others[0].budget.reserve(10, 'cold')
  await others[1].budget.reconcile()
  t.strictSame(usedOf(others[1]), [30, 30, 30])
  await given.settle('unsent')
  await others[1].budget.reconcile()
  t.strictSame(usedOf(others[1]), [0, 0, 0])
})
