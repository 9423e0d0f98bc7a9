// Without it a gateway that gets no messages of others would exceed limits or stop counting.

import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { reconcileForMs } from '../../src/keys/reconciliation.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { meterOnRedis } from './meters.ts'

const skip = withoutOwnRedis
// Each waits for half of its time until a connection is tried again.
t.jobs = 3

const openMeters = async (t: Test, url: string, count: number, clock = manualClock(Date.now())) => {
  const open = async () => {
    const given = { instances: () => count, clock }
    const opened = await meterOnRedis(t, url.replace('//', '//gw:pw@'), given)
    const known = async () => {
      for await (const [each] of opened.meter.usageAt(Date.now())) return each?.used
      return undefined
    }
    return { ...opened, known }
  }
  return Promise.all(Array.from({ length: count }, open))
}

const setUser = (raw: Redis, ...rules: string[]) => raw.call('ACL', 'SETUSER', 'gw', ...rules)
const killSubscriptions = (raw: Redis) => raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub')

/** How the connection fails, and the reason. `before` the gateways start, or `after` they have subscribed. */
const faults: [string, 'before' | 'after', (raw: Redis, t: Test) => unknown, RegExp][] = [
  ['a user without channels', 'before', raw => setUser(raw, 'resetchannels'), /^NOPERM .*channels/],
  ['channels that are taken away', 'after', raw => setUser(raw, 'resetchannels'), /^NOPERM .*channels/],
  ['a user that may not subscribe', 'before', raw => setUser(raw, '-subscribe'), /^NOPERM .*subscribe/],
  ['another password', 'after', raw => setUser(raw, 'resetpass', '>other'), /^WRONGPASS/],
  ['too many clients', 'after', raw => raw.config('SET', 'maxclients', '1'), /max number of clients/],
  [
    'connections that are ended again and again',
    'after',
    (raw, t) => {
      const timer = setInterval(() => void killSubscriptions(raw).catch(() => {}), 100)
      t.teardown(() => clearInterval(timer))
    },
    /^the connection was closed$|^there is no connection|ECONNRESET/,
  ],
]

// First, because it takes longest: a connection holds once it has lasted for five seconds.
t.test('counts of others are read, and messages are awaited once a connection holds', { skip }, async t => {
  const { url, admin: raw } = await startRedis(t)
  await setUser(raw, 'on', '>pw', '~*', '+@all', 'resetchannels')
  const [one, two] = await openMeters(t, url, 2)
  if (!one || !two) return
  t.ok(await one.admit())
  for (let i = 0; i < 60; i++) await two.admit()
  t.equal(await one.known(), 1)
  await until('it is read', async () => {
    await one.meter.probe()
    return (await one.known()) === 61
  })
  await setUser(raw, '&*')
  await until('messages arrive', () => one.faults.at(-1) === null)
  t.ok(one.store.usageMessagesArrive())
})

// What one gateway does without messages does not depend on why there are none.
for (const count of [1, 2])
  for (const [what, when, break_, reason] of count === 1 ? faults.slice(0, 2) : faults)
    t.test(`${what}, ${count === 1 ? 'one gateway' : 'two gateways'}`, { skip }, async t => {
      const { url, admin: raw } = await startRedis(t)
      await setUser(raw, 'on', '>pw', '~*', '&*', '+@all')
      if (when === 'before') await break_(raw, t)
      const clock = manualClock(Date.now())
      const meters = await openMeters(t, url, count, clock)
      const subscribed = () => meters.every(({ store }) => store.usageMessagesArrive())
      if (when === 'after') {
        await until('all have subscribed', subscribed)
        t.ok(await meters[0]?.admit())
        await break_(raw, t)
        await killSubscriptions(raw)
      }
      await until('the reason is known', () => meters.every(({ faults }) => reason.test(faults.at(-1) ?? '')))
      t.notOk(subscribed())
      const isCounting = async () => {
        await Promise.all(meters.map(({ meter }) => meter.probe()))
        return meters.every(({ meter }) => meter.state() === 'counting')
      }
      await until('all count in the store', async () => {
        clock.advance(reconcileForMs)
        return await isCounting()
      })
      let failed = 0
      for (const { store } of meters) {
        const { commit } = store
        store.commit = batch =>
          commit(batch).catch((error: unknown) => {
            failed += 1
            throw error
          })
      }
      let admitted = when === 'after' ? 1 : 0
      for (let i = 0; i < 120; i++) admitted += (await meters[i % count]?.admit()) ?? 0
      t.equal(admitted, 100)
      t.equal(failed, 0, 'no batch is sent twice')
      t.ok(await isCounting())
      // A connection that is refused may break before it says why.
      for (const each of meters) t.ok(each.faults.length <= 2, 'a reason is told once')
    })
